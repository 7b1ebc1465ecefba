// Every program of the control plane, and the kubelet, in one binary: the first argument says which one this process is.
//
// They share most of their code, so one build takes a quarter of the time and space of five.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllermanager.NewControllerManagerCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
}

func main() {
	if len(os.Args) < 2 {
		fail("which program? etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet or forward")
	}
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "forward":
		forward(os.Args[1:])
		return
	}
	command, known := commands[os.Args[0]]
	if !known {
		fail("unknown program " + os.Args[0])
	}
	os.Exit(cli.Run(command()))
}

// forward FD ADDRESS carries what arrives at an inherited listening socket to an address.
//
// The socket was opened in the network namespace of the machine, this process runs in that of the cluster: tests outside
// reach the API server, and nothing else of the two networks touches.
func forward(arguments []string) {
	if len(arguments) != 2 {
		fail("forward needs a file descriptor and an address")
	}
	descriptor, err := strconv.Atoi(arguments[0])
	if err != nil {
		fail(err.Error())
	}
	listener, err := net.FileListener(os.NewFile(uintptr(descriptor), "listener"))
	if err != nil {
		fail(err.Error())
	}
	for {
		outside, err := listener.Accept()
		if err != nil {
			fail(err.Error())
		}
		go carry(outside.(*net.TCPConn), arguments[1])
	}
}

func carry(outside *net.TCPConn, address string) {
	defer outside.Close()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	inside := connection.(*net.TCPConn)
	defer inside.Close()
	done := make(chan struct{})
	go func() {
		io.Copy(inside, outside)
		inside.CloseWrite()
		close(done)
	}()
	io.Copy(outside, inside)
	outside.CloseWrite()
	<-done
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(2)
}
