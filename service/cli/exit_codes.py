"""Exit codes of the `faultline` command; docs/commands.md explains them."""

OK = 0
FAILED = 1
USAGE = 2
SOME_LINES_BAD = 3
NO_MODEL = 4
TOO_MANY_DEAD_LETTERS = 5
INTERRUPTED = 130
BROKEN_PIPE = 141
