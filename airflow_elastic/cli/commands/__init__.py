"""One module a command, each with ``run(args)``; imported only when the command is called."""
