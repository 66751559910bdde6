"""`faultline evaluate --adaptation LABELS TEST`: what a site's labels change on failures of other groups."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import adaptation
from classifiers.evaluation.adaptation import Adaptation
from classifiers.evaluation.metrics import Evaluation
from classifiers.model.artifact import Model
from classifiers.signatures import Catalogue
from service.cli.files import write_output
from service.cli.output import document
from service.errors import InvalidInput

STANDARD_OUTPUT: Final = Path("-")
_NAMES: Final = {"side": "side right", "cause": "cause right", "ece": "calibration error of the side"}


def run(
    labels: Sequence[LabelledCase],
    tests: Sequence[LabelledCase],
    model: Model,
    catalogue: Catalogue,
    output: Path | None,
    progress: Callable[[str], None],
) -> int:
    """Measure and print the figures; with `output` as JSON to a file, or with "-" to standard output.

    Raises:
        InvalidInput: no test case is left apart from the groups that have labels.
    """
    try:
        found = adaptation.measure(model, catalogue, labels, tests, now=datetime.now(UTC), progress=progress)
    except ValueError as error:
        raise InvalidInput(f"--adaptation: {error}") from None
    content = orjson.dumps(figures(found, model.label), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if output == STANDARD_OUTPUT:
        document(content.decode(), end="")
        return 0
    document(table(found))
    if output is not None:
        write_output(output, content)
    return 0


def figures(found: Adaptation, model: str) -> dict[str, Any]:
    """The figures as JSON data."""
    return {
        "schema": "faultline-adaptation/1",
        "model": model,
        "layer": found.layer.id,
        "labels": found.labels,
        "tests": found.tests,
        "left_out": found.left_out,
        "random_sample": found.layer.calibration.cases,
        "predictors": [_predictor(one) for one in (found.constant, found.before, found.after)],
        "differences": {name: asdict(one) | {"gain": one.gain} for name, one in found.differences.items()},
        "recall_by_side": {
            side: {"cases": count, "before": before, "after": after}
            for side, (count, before, after) in found.recalls.items()
        },
        "recurrence": None if found.recurrence is None else asdict(found.recurrence),
    }


def _predictor(one: Evaluation) -> dict[str, Any]:
    return {
        "name": one.name,
        **{
            axis: {"accuracy": one.axes[axis].accuracy, "macro_f1": one.axes[axis].macro_f1}
            for axis in ("side", "cause")
        },
        "ece": one.ece,
    }


def table(found: Adaptation) -> str:
    """The figures as a plain table."""
    lines = [
        f"{found.labels} labels, {found.tests} test cases of other groups"
        + (f" ({found.left_out} of labelled groups left out)" if found.left_out else ""),
        f"{'':34s}{'constant':>12s}{'before':>12s}{'after':>12s}   change, 95 % interval",
    ]
    predictors = (found.constant, found.before, found.after)
    for axis in ("side", "cause"):
        if axis in found.differences:  # else no test case has a label of it
            rows = [one.axes[axis] for one in predictors]
            lines.append(_row(_NAMES[axis], [one.accuracy for one in rows], found, axis))
            lines.append(_row(f"{axis} macro-F1", [one.macro_f1 for one in rows], found, None))
    if "ece" in found.differences:
        lines.append(_row(_NAMES["ece"], [one.ece for one in predictors], found, "ece"))
    for side, (count, before, after) in found.recalls.items():
        lines.append(f"{f'recall of {side}, {count} cases':46s}{before:12.3f}{after:12.3f}   {after - before:+.3f}")
    if found.recurrence is not None and found.recurrence.windows:
        one = found.recurrence
        lines.append(
            f"recurrences after one label: side {one.side:.3f}, cause {one.cause:.3f} of {one.windows} windows"
            " with other hosts and numbers"
        )
    return "\n".join(lines)


def _row(name: str, values: Sequence[float], found: Adaptation, difference: str | None) -> str:
    shown = f"{name:34s}" + "".join(f"{value:12.3f}" for value in values)
    if difference is None or difference not in found.differences:
        return shown
    one = found.differences[difference]
    return f"{shown}   {one.gain:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"
