"""`faultline explain LOG...`: explain why a job failed from its logs alone."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from classifiers import garbage_collection
from classifiers.last_good_run import good_run
from service import settings
from service.cli import exit_codes, output
from service.cli.argument_types import Subparsers
from service.cli.classifier.verdict_of_event import case_of, verdict_body
from service.cli.files import read_input
from service.clock import SystemClock
from service.contracts.event import CLASSIFIED_STATUSES, NodeEventIn, Status
from service.explain import explanation, log_files, read_logs, terminal
from service.recommend import policy
from service.signatures.reloading_diagnoser import ReloadingDiagnoser
from service.signatures.signature_folder import SignatureFolder

_MOST_CODE = 255


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "explain",
        help="explain why a job failed from its logs alone",
        description="Reads the logs of one failed job and prints why it failed, the lines that matter, and what to do. "
        "Ranks and nodes are guessed from file names and line prefixes. "
        "Exit code: 0 explained, 2 a log is missing, empty, unreadable or not text, 4 no model or a foreign one.",
    )
    parser.add_argument("log", nargs="+", help="a log, plain or compressed; a folder of logs; - for standard input")
    output.add_json_option(parser)
    parser.add_argument(
        "--status",
        choices=sorted(status.value for status in CLASSIFIED_STATUSES),
        help="how the job ended (default: guessed from the logs)",
    )
    parser.add_argument("--exit-code", type=_exit_code, help="its exit code (default: guessed from the logs)")
    parser.add_argument("--node-events", metavar="FILE", help="kernel lines or other events of its nodes")
    parser.add_argument(
        "--good",
        metavar="FILE",
        action="append",
        default=[],
        help="a log of a run of the same job that succeeded; lines that it contains too are not the cause (repeatable)",
    )
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="default: colours on a terminal"
    )
    parser.add_argument("--model", type=Path, help="the model's folder (FAULTLINE_MODEL_DIR)")


def _exit_code(value: str) -> int:
    if not value.isdecimal() or int(value) > _MOST_CODE:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {_MOST_CODE}, got {value!r}")
    return int(value)


def run(args: argparse.Namespace) -> int:
    """Explain the logs of one job.

    Raises:
        ConfigurationError: a log is missing, empty, unreadable or not text, or a setting is wrong.
        ModelUnavailable: there is no model, or it is not a model of this version.
    """
    logs = read_logs.read(log_files.find(args.log))
    request = explanation.prepare(
        logs,
        status=None if args.status is None else Status(args.status),
        exit_code=args.exit_code,
        node_events=_node_events(args.node_events),
    )
    configured = settings.read()
    with garbage_collection.paused():
        folder = SignatureFolder(configured.signatures_dir, SystemClock())
        diagnoser = ReloadingDiagnoser(args.model or configured.model_dir, folder, key=configured.model_key_bytes())
    good = good_run(one.text for one in read_logs.read(log_files.find(args.good))) if args.good else None
    (verdict,) = diagnoser.diagnose([case_of(request.event, request.streams, good)])
    event = explanation.with_suspected_node(request.event, verdict)
    body = verdict_body(event, verdict, policy.load(configured.policy_file))
    found = explanation.explain(request, body, folder.current().layered)
    if args.format == "json":
        output.json_document(found.to_wire())
    else:
        output.styled(terminal.text_of(found, terminal.style_of(sys.stdout, args.color)))
    return exit_codes.OK


def _node_events(name: str | None) -> Sequence[NodeEventIn]:
    if name is None:
        return ()
    from service.explain import node_event_file  # noqa: PLC0415 - start-up: these formats are seldom needed

    return node_event_file.read(read_input(name), name, explanation.CLUSTER)
