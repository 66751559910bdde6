"""The subcommands of the `faultline` command, one module each, in folders by domain."""
