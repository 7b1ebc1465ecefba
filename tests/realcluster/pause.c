/* What a pod's sandbox and a placeholder run: nothing, until they are told to end. As process 1 it reaps orphans. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number) { (void)number; _exit(0); }
static void reap(int number) { (void)number; while (waitpid(-1, 0, WNOHANG) > 0) {} }

int main(void) {
  signal(SIGINT, end);
  signal(SIGTERM, end);
  signal(SIGCHLD, reap);
  for (;;) pause();
}
