"""The `faultline` command: runs a subcommand's module and turns errors into one clear line and an exit code."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from classifiers import garbage_collection
from service import native_modules
from service.cli import exit_codes, output
from service.cli.commands import COMMANDS, module_of, parser_for
from service.errors import ConfigurationError, FaultlineError, InvalidInput, ModelUnavailable

# Before a command imports the modules, also in processes that this program starts.
native_modules.use()


def exit_code_of(error: FaultlineError) -> int:
    """Return the exit code for an error that ended a command."""
    if isinstance(error, ModelUnavailable):
        return exit_codes.NO_MODEL
    if isinstance(error, ConfigurationError | InvalidInput):
        return exit_codes.USAGE
    return exit_codes.FAILED


def open_closed_streams() -> None:
    """Connect standard streams that the caller closed to the null device; Python sets them to None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - for the whole process


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (see `service.cli.exit_codes`)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if word in COMMANDS), None)
    # pydantic would search all installed packages for plugins, a tenth of a second; the program uses none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    open_closed_streams()
    try:
        with garbage_collection.paused():
            args = parser_for(command).parse_args(arguments)
        code: int = module_of(args.command).run(args)
    except FaultlineError as error:
        output.problem(error.detail)
        return exit_code_of(error)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        return exit_codes.BROKEN_PIPE
    except OSError as error:  # such as a full disk while a result is written
        output.problem(error)
        return exit_codes.FAILED
    return code


if __name__ == "__main__":
    sys.exit(main())
