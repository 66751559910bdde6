"""The subcommands of the `faultline` command and their argument parsers."""

import argparse
import importlib
from importlib.metadata import version

COMMANDS = {
    "explain": "explain why a job failed from its logs alone",
    "serve": "run the API and the dashboard; with --with-worker also the worker",
    "worker": "consume job completions from Kafka",
    "classify": "classify the failed jobs in a file of events",
    "replay": "store events from files without Kafka",
    "publish": "publish events from files on the topic",
    "train": "train the classifier on the packaged data and on your own labels",
    "evaluate": "measure the classifier",
    "model": "list or show trained models",
    "labels": "export or import corrections of verdicts as labelled cases",
    "db": "upgrade or check the database schema",
    "policy": "check, show, explain or replay the mitigation policy",
    "signatures": "check, list or try your own signatures",
    "report": "print or publish the weekly quality report",
    "hook": "carry out resubmission requests at a scheduler",
    "automation": "stop or start all automatic actions, or show their status",
    "config": "print the effective settings",
    "watch": "watch a Kubernetes cluster and send an event for each finished Job and Pod",
    "token": "create, list or revoke API tokens",
    "account": "manage accounts that log in with a name and a password",
    "completion": "print a shell completion script",
    "audit": "list recorded changes, or verify that the records are unaltered",
}


def parser_for(command: str | None) -> argparse.ArgumentParser:
    """Return the parser with the arguments of one command; only that command's module is imported."""
    parser, commands = _empty_parser()
    for name, summary in COMMANDS.items():
        if name == command:
            importlib.import_module(f"service.cli.{name}").add_parser(commands)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return parser


def full_parser() -> argparse.ArgumentParser:
    """Return the parser with the arguments of all commands; imports all their modules."""
    parser, commands = _empty_parser()
    for name in COMMANDS:
        importlib.import_module(f"service.cli.{name}").add_parser(commands)
    return parser


def _empty_parser() -> "tuple[argparse.ArgumentParser, argparse._SubParsersAction[argparse.ArgumentParser]]":
    parser = argparse.ArgumentParser(
        prog="faultline", description="Classifies why deep-learning jobs failed and advises what to do."
    )
    parser.add_argument("--version", action="version", version=f"faultline {version('faultline')}")
    return parser, parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
