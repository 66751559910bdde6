"""The training cases that come with the package.

Captured cases are stored (`classifiers/data/captured`, one packed file a family of programs). Composed cases are
derived: they are composed from the kinds of failure whenever they are needed, the same ones for the same seed, and
never stored.
"""

from importlib.resources import files
from typing import Any, Final

from classifiers.composition import kinds
from classifiers.composition.cases import compose
from classifiers.composition.long_runs import failure_kinds
from classifiers.composition.long_runs import run as long_run
from classifiers.data.labelled_cases import LabelledCase, case_files, check_ids, parse, read_file

SEED: Final = 7
LONG_RUN_SEED: Final = 1
LONG_RUNS_PER_KIND: Final = 5
MAX_STEPS: Final = 120  # of a long run


def captured() -> list[LabelledCase]:
    """The stored cases: runs of programs that failed for real.

    Raises:
        DatasetError: a file is not as the format asks.
    """
    folder = files("classifiers").joinpath("data", "captured")
    return [case for file in case_files(folder) for case in read_file(file)]


def composed(seed: int = SEED) -> list[LabelledCase]:
    """The cases of all kinds in `classifiers/data/kinds`.

    Raises:
        ValueError: a kind is not as the format asks; the text names file and kind.
    """
    scenery = kinds.scenery()
    return [parse(raw, str(raw["id"])) for kind in kinds.read() for raw in compose(kind, scenery, seed)]


def long_run_objects(seed: int = LONG_RUN_SEED) -> list[dict[str, Any]]:
    """Composed runs of many ranks and many steps, a few of each kind of end, as labelled-case/1 objects."""
    return [
        long_run.compose(kind, f"{kind.name}-{seed}-{number}", MAX_STEPS)
        for kind in failure_kinds.read()
        for number in range(LONG_RUNS_PER_KIND)
    ]


def long_runs(seed: int = LONG_RUN_SEED) -> list[LabelledCase]:
    """Composed runs of many ranks and many steps, a few of each kind of end."""
    return [parse(raw, str(raw["id"])) for raw in long_run_objects(seed)]


def packaged() -> list[LabelledCase]:
    """All training cases that come with the package, in a fixed order.

    Raises:
        DatasetError: a case is not as the format asks, or an id occurs twice.
        ValueError: a kind is not as its format asks.
    """
    cases = [*captured(), *composed(), *long_runs()]
    check_ids(cases)
    return cases
