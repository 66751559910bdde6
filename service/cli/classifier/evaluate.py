"""`faultline evaluate [--cases FILE] [--noise] [--html REPORT] [--json FILE]`: measure the classifier."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from classifiers import signatures
from classifiers.composition import training_cases
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import DatasetError, LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation import baselines, case_files, held_out, measured_rates, metrics, model_comparison, report
from classifiers.evaluation.metrics import Answer, Evaluation
from classifiers.model import artifact
from classifiers.model.artifact import ModelError
from service import settings
from service.cli.classifier import evaluate_noise
from service.cli.files import check_readable, check_writable, write_output
from service.errors import FieldError, InvalidInput, ModelUnavailable
from service.recommend import policy

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add_parser(commands: "Subparsers") -> None:
    """Declare the command's arguments."""
    parser = commands.add_parser(
        "evaluate",
        help="measure the classifier",
        description="Without --cases: the packaged cases, each kind classified by a model that has not seen it.",
    )
    parser.add_argument("--cases", type=Path, help="labelled-case/1 lines, or flat ones (id, log, event, side)")
    parser.add_argument("--html", type=Path, help="write a report with tables and plots")
    parser.add_argument(
        "--json", type=Path, help="write the confusion of held-out kinds by cause, or with --noise its figures"
    )
    parser.add_argument(
        "--noise",
        action="store_true",
        help="measure how verdicts hold among harmless node events and neutral lines; takes minutes without --cases",
    )
    parser.add_argument(
        "--compare", action="store_true", help="compare types of models on held-out families; takes minutes"
    )
    parser.add_argument("--model", type=Path, help="the model's folder (FAULTLINE_MODEL_DIR)")


def _read(file: Path) -> list[LabelledCase]:
    check_readable([str(file)])
    try:
        if file.name.endswith(".zst"):
            return labelled_cases.read_file(file)
        return case_files.read_cases(file.read_bytes(), file.name)
    except OSError as error:
        raise InvalidInput(f"{file}: {error.strerror}") from error
    except DatasetError as error:
        raise InvalidInput(str(error), (FieldError(error.field, error.expected, error.got),)) from error


def table(evaluations: Sequence[Evaluation]) -> str:
    """Return the metrics as a plain table, one column for each predictor."""
    first = evaluations[0]
    lines = [f"{'':34s}" + "".join(f"{one.name:>26s}" for one in evaluations)]
    for axis, figures in first.axes.items():
        if figures.cases:
            name = f"{axis}: right of {figures.cases}"
            lines.append(f"{name:34s}" + "".join(f"{one.axes[axis].accuracy:26.3f}" for one in evaluations))
            name = f"{axis}: macro-F1"
            lines.append(f"{name:34s}" + "".join(f"{one.axes[axis].macro_f1:26.3f}" for one in evaluations))
    single = {
        "answered": first.answered,
        "side right when answered": first.right_when_answered,
        "calibration error of the side": first.ece,
        "AUROC of confidence": first.auroc,
    }
    if first.root_rank[1]:
        single[f"root rank named, of {first.root_rank[1]}"] = first.root_rank[0]
    if first.root_line[1]:
        single[f"first line found, of {first.root_line[1]}"] = first.root_line[0]
    if first.many_rank[1]:
        single[f"root rank named, of {first.many_rank[1]} of several ranks"] = first.many_rank[0]
    if first.many_line[1]:
        single[f"first line found, of {first.many_line[1]} of several ranks"] = first.many_line[0]
    lines += [f"{name:34s}{value:26.3f}" for name, value in single.items()]
    weak = [
        f"{code} ({count})" for axis, codes in first.weak.items() if axis != "side" for code, count in codes.items()
    ]
    if weak:
        lines.append(f"weak, fewer than {metrics.WEAK_CLASS} cases: " + ", ".join(weak))
    return "\n".join(lines)


def evaluations(
    cases: Sequence[LabelledCase], answers: Sequence[tuple[str, Sequence[Answer]]]
) -> dict[str, list[Evaluation]]:
    """Return the metrics of each predictor: for all cases under "", and each medium (log, report) named in cases."""
    parts = {"": list(range(len(cases))), **metrics.by_medium(cases)}
    return {
        medium: [
            metrics.measure(name, [cases[place] for place in places], [own[place] for place in places])
            for name, own in answers
        ]
        for medium, places in parts.items()
    }


def run(args: argparse.Namespace) -> int:
    """Evaluate, print the metrics and write the report."""
    _check(args)
    check_writable(args.json)
    check_writable(args.html)
    catalogue = signatures.packaged()
    if args.compare:
        rows = model_comparison.compare(training_cases.packaged(), catalogue, progress=_progress)
        print(model_comparison.markdown(rows))
        return 0
    configured = settings.read()
    try:
        model = artifact.load(args.model or configured.model_dir)
    except ModelError as error:
        raise ModelUnavailable(str(error)) from None
    if args.noise:
        measured = None if args.cases is None else _read(args.cases)
        return evaluate_noise.run(args, measured, model, catalogue, policy.load(configured.policy_file), _progress)
    if args.cases is not None:
        cases, source, name = _read(args.cases), args.cases.name, "faultline"
        answers = [metrics.answer_of(one) for one in Diagnoser(model, catalogue).diagnose([case.raw for case in cases])]
    else:
        cases, source, name = training_cases.packaged(), "the packaged cases", "faultline, kind held out"
        answers, viewed = held_out.held_out_answers(cases, catalogue, model, progress=_progress)
        if args.json is not None:
            rates = measured_rates.tables(viewed, cases, model=model.label, threshold=model.calibration.threshold)
            write_output(args.json, (json.dumps(rates, indent=1) + "\n").encode())
    figures = evaluations(cases, [(name, answers), *baselines.baselines(cases, catalogue)])
    for medium, predictors in figures.items():
        if medium:
            print(f"\nmedium: {medium}, {predictors[0].cases} cases")
        print(table(predictors))
    if args.html is not None:
        write_output(args.html, report.page(figures[""], source=source, model=model.label).encode())
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.noise:
        if args.compare or args.html is not None:
            raise InvalidInput("--noise has no report page and compares no models: leave out --html and --compare")
    elif args.json is not None and args.cases is not None:
        raise InvalidInput("--json describes held-out kinds of the packaged cases: leave out --cases")


def _progress(line: str) -> None:
    print(line, file=sys.stderr)
