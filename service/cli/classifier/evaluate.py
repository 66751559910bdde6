"""`faultline evaluate [--cases FILE | --hold-out UNIT] [--noise] [--html FILE] [--json FILE]`: measure verdicts."""

import argparse
import json
from pathlib import Path
from typing import Any

from classifiers import signatures
from classifiers.composition import training_cases
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import DatasetError, LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation import (
    baselines,
    case_files,
    figures,
    held_out,
    measured_rates,
    metrics,
    model_comparison,
    report,
    text_tables,
)
from service import settings
from service.cli import output
from service.cli.argument_types import Subparsers
from service.cli.classifier import evaluate_adaptation, evaluate_noise, evaluate_second_reader
from service.cli.files import check_readable, check_writable, write_output
from service.errors import FieldError, InvalidInput
from service.recommend import policy
from service.signatures.reloading_diagnoser import load_model


def add_parser(commands: Subparsers) -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "evaluate",
        help="measure the classifier",
        description="Without --cases: the packaged cases, each kind classified by a model that has not seen it.",
    )
    parser.add_argument("--cases", type=Path, help="labelled-case/1 lines, or flat ones (id, log, event, side)")
    parser.add_argument("--html", type=Path, help="write a report with tables and plots")
    parser.add_argument(
        "--json",
        type=Path,
        nargs="?",
        const=evaluate_adaptation.STANDARD_OUTPUT,
        help="write the figures; without --cases also the confusion of held-out cases by cause; without a file to"
        " standard output (--adaptation)",
    )
    parser.add_argument(
        "--adaptation",
        type=Path,
        nargs=2,
        metavar=("LABELS", "TEST"),
        help="measure what labels change: learn a site layer from LABELS, classify TEST without and with it",
    )
    parser.add_argument(
        "--hold-out",
        choices=sorted(held_out.UNITS),
        help="what is held out of training without --cases: kinds of failure (default), families (programs, files of "
        "kinds) or sources (where the wording is from)",
    )
    parser.add_argument(
        "--noise",
        action="store_true",
        help="measure how verdicts hold among harmless node events and neutral lines; takes minutes without --cases",
    )
    parser.add_argument(
        "--compare", action="store_true", help="compare types of models on held-out families; takes minutes"
    )
    evaluate_second_reader.add_arguments(parser)
    parser.add_argument("--model", type=Path, help="the model's folder (FAULTLINE_MODEL_DIR)")


def _read(file: Path) -> list[LabelledCase]:
    cases = read_labels(file)
    if not cases:
        raise InvalidInput(f"{file}: expected at least one case")
    return cases


def read_labels(file: Path) -> list[LabelledCase]:
    """The cases of a file, which may be empty: without labels, verdicts stay the same.

    Raises:
        InvalidInput: the file can't be read, or a line is no case.
    """
    check_readable([str(file)])
    try:
        with labelled_cases.opened_lines(file) as lines:
            cases = case_files.read_cases(lines, file.name)
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}") from error
    except DatasetError as error:
        raise InvalidInput(str(error), (FieldError(error.field, error.expected, error.got),)) from error
    return cases


def run(args: argparse.Namespace) -> int:
    """Evaluate, print the metrics and write the report."""
    _check(args)
    check_writable(None if args.json == evaluate_adaptation.STANDARD_OUTPUT else args.json)
    check_writable(args.html)
    check_writable(args.second_reader_export)
    evaluate_second_reader.is_wanted(args)
    catalogue = signatures.packaged()
    if args.compare:
        rows = model_comparison.compare(training_cases.packaged(), catalogue, progress=output.progress)
        output.document(model_comparison.markdown(rows))
        return 0
    configured = settings.read()
    model = load_model(args.model or configured.model_dir, configured.model_key_bytes())
    if args.adaptation is not None:
        labels, tests = read_labels(args.adaptation[0]), _read(args.adaptation[1])
        return evaluate_adaptation.run(labels, tests, model, catalogue, args.json, output.progress)
    if args.noise:
        measured = None if args.cases is None else _read(args.cases)
        return evaluate_noise.run(
            args, measured, model, catalogue, policy.load(configured.policy_file), output.progress
        )
    if evaluate_second_reader.is_wanted(args):
        return evaluate_second_reader.run(args, _read(args.cases), model, catalogue)
    content: dict[str, Any] = {"schema": text_tables.SCHEMA, "model": model.label}
    if args.cases is not None:
        cases, source, name = _read(args.cases), args.cases.name, "faultline"
        answers = [metrics.answer_of(one) for one in Diagnoser(model, catalogue).diagnose([case.raw for case in cases])]
    else:
        unit = args.hold_out or "kind"
        cases, source, name = training_cases.packaged(), "the packaged cases", f"faultline, {unit} held out"
        training = training_cases.packaged(training_cases.TRAINING_NOISE)  # as `faultline train` does
        answers, viewed = held_out.held_out_answers(
            cases, catalogue, model, unit=held_out.UNITS[unit], training=training, progress=output.progress
        )
        content = measured_rates.tables(
            viewed,
            cases,
            model=model.label,
            data=labelled_cases.digest(training),
            threshold=model.calibration.threshold,
            unit=unit,
        )
    predictors = [(name, answers), *baselines.baselines(cases, catalogue)]
    parts = figures.measure_parts(cases, predictors)
    output.document(text_tables.text(parts))
    if args.json is not None:
        content["evaluation"] = text_tables.json_figures(parts)
        write_output(args.json, (json.dumps(content, indent=1) + "\n").encode())
    if args.html is not None:
        measured_all = [metrics.measure(own, cases, given) for own, given in predictors]
        page = report.page(measured_all, source=source, model=model.label, parts=parts)
        write_output(args.html, page.encode())
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.adaptation is not None:
        others = (args.cases, args.html, args.hold_out)
        if args.noise or args.compare or any(one is not None for one in others):
            raise InvalidInput(
                "--adaptation cannot be combined with others: leave out --cases, --hold-out, --noise, --compare and"
                " --html"
            )
        return
    if args.json == evaluate_adaptation.STANDARD_OUTPUT:
        raise InvalidInput("--json: expected a file; only --adaptation writes to standard output")
    if args.noise and (args.compare or args.html is not None):
        raise InvalidInput("--noise has no report page and compares no models: leave out --html and --compare")
    if args.compare and any(one is not None for one in (args.cases, args.html, args.json)):
        raise InvalidInput(
            "--compare trains on the packaged cases and prints a table: leave out --cases, --html and --json"
        )
    if args.hold_out is not None and (args.noise or args.compare or args.cases is not None):
        raise InvalidInput("--hold-out is for training on the packaged cases: leave out --cases, --noise and --compare")
