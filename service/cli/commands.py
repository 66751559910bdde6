"""The subcommands of the `faultline` command and their argument parsers."""

import argparse
import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

from service.cli import output
from service.cli.argument_types import Subparsers


class _Parser(argparse.ArgumentParser):
    """A parser whose messages may contain arguments with control characters, such as names of files."""

    def error(self, message: str) -> NoReturn:
        """End the process with a usage error of one line."""
        super().error(output.escaped(message))

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(output.escaped_but_styled(message), file)


class _ShowVersion(argparse.Action):
    """Prints the version and ends the process; it is looked up only then, since that takes a while."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 -- a start without is faster

        output.line(f"faultline {version('faultline')}")
        parser.exit()


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: the folder of its module in `service/cli`, and its line in the help."""

    folder: str
    summary: str


COMMANDS = {
    "explain": Command("classifier", "explain why a job failed from its logs alone"),
    "serve": Command("processes", "run the API and the dashboard; with --with-worker also the worker"),
    "worker": Command("processes", "consume job completions from Kafka"),
    "classify": Command("classifier", "classify the failed jobs in a file of events"),
    "replay": Command("processes", "store events from files without Kafka"),
    "publish": Command("processes", "publish events from files on the topic"),
    "train": Command("classifier", "train the classifier on the packaged data and on your own labels"),
    "evaluate": Command("classifier", "measure the classifier"),
    "retrain": Command("classifier", "learn from the stored labels; the gate promotes the result, refuses or asks"),
    "reclassify": Command("classifier", "classify stored failures again"),
    "model": Command("classifier", "list, show, seal, compare, promote or roll back models"),
    "feedback": Command("classifier", "say whether the verdict on your job is right"),
    "labels": Command("classifier", "export or import corrections of verdicts as labelled cases"),
    "db": Command("administration", "upgrade or check the database schema"),
    "policy": Command("administration", "check, show, explain or replay the mitigation policy"),
    "signatures": Command("classifier", "check, list or try your own signatures"),
    "report": Command("administration", "print or publish the weekly quality report"),
    "subscription": Command("administration", "list, add or end subscriptions of the weekly report"),
    "hook": Command("processes", "carry out resubmission requests at a scheduler"),
    "automation": Command("administration", "stop or start all automatic actions, or show their status"),
    "config": Command("administration", "print the effective settings"),
    "watch": Command("processes", "watch a Kubernetes cluster and send an event for each finished Job and Pod"),
    "token": Command("administration", "create, list or revoke API tokens"),
    "account": Command("administration", "manage accounts that log in with a name and a password"),
    "completion": Command("administration", "print a shell completion script"),
    "audit": Command("administration", "list recorded changes, or verify that the records are unaltered"),
}


def module_of(command: str) -> ModuleType:
    """Import the module of a command."""
    return importlib.import_module(f"service.cli.{COMMANDS[command].folder}.{command}")


def parser_for(command: str | None) -> argparse.ArgumentParser:
    """Return the parser with the arguments of one command; only that command's module is imported."""
    parser, commands = _empty_parser()
    for name, entry in COMMANDS.items():
        if name == command:
            module_of(name).add_parser(commands)
        else:
            commands.add_parser(name, help=entry.summary, add_help=False)
    return parser


def full_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of all commands; imports all their modules."""
    parser, commands = _empty_parser()
    for name in COMMANDS:
        module_of(name).add_parser(commands)
    return parser


def _empty_parser() -> tuple[argparse.ArgumentParser, Subparsers]:
    parser: argparse.ArgumentParser = _Parser(
        prog="faultline", description="Classifies why deep-learning jobs failed and advises what to do."
    )
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show program's version number and exit")
    return parser, parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
