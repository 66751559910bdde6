"""The `faultline` command: finds the subcommand's module, runs it, turns errors into one clear line."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version

from service.errors import ConfigurationError, FaultlineError

USAGE = 2
COMMANDS = {
    "serve": "run the API and the dashboard, with --with-worker also the worker",
    "worker": "consume job completions from Kafka",
    "classify": "say why the jobs in a file of events failed",
    "replay": "read events from files straight into the store",
    "publish": "put events from files on the topic",
    "train": "train the text classifier on the corpus, and on labels of your own",
    "evaluate": "measure the classifier",
    "model": "list or show trained models",
    "labels": "export or import what people said of verdicts",
    "db": "upgrade or check the database schema",
    "policy": "check or show the mitigation policy",
    "report": "the weekly quality report",
    "hook": "resubmit jobs beside their scheduler, as the policy asks for it",
    "automation": "stop or start all automatic action, or show how it stands",
    "config": "show the settings in force",
    "watch": "turn a cluster's ends of Jobs and Pods into events",
    "token": "create, list or revoke API tokens",
    "account": "people who log in with a name and a password",
    "audit": "who changed what, and whether the record of it was changed",
}


def parser_for(command: str | None) -> argparse.ArgumentParser:
    """The parser, with the arguments of one command; only that command's module is imported."""
    parser = argparse.ArgumentParser(
        prog="faultline", description="Says why a deep-learning job failed and what to do."
    )
    parser.add_argument("--version", action="version", version=f"faultline {version('faultline')}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name == command:
            importlib.import_module(f"service.cli.{name}").add_parser(commands)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (2: wrong usage or settings)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in arguments if word in COMMANDS), None)
    try:
        args = parser_for(command).parse_args(arguments)
        code: int = importlib.import_module(f"service.cli.{args.command}").run(args)
    except ConfigurationError as error:
        print(f"faultline: {error.detail}", file=sys.stderr)
        return USAGE
    except FaultlineError as error:
        print(f"faultline: {error.detail}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 141
    return code


if __name__ == "__main__":
    sys.exit(main())
