"""The subcommands of the `faultline` command, one module each."""
