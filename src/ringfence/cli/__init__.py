"""The command line: one file per subcommand, parse, call, print."""
