"""The packaged training cases.

Captured cases are stored (`classifiers/data/captured`, one packed file for each family of programs). Composed cases are
not stored: they are generated from the kinds of failure when needed, and the same seed gives the same cases.
"""

from importlib.resources import files
from typing import Any, Final

from classifiers.composition import kinds
from classifiers.composition.cases import compose
from classifiers.composition.long_runs import failure_kinds
from classifiers.composition.long_runs import run as long_run
from classifiers.composition.noisy_cases import TrainingNoise, with_noise
from classifiers.data.labelled_cases import LabelledCase, case_files, check_ids, parse, read_file

SEED: Final = 7
LONG_RUN_SEED: Final = 1
LONG_RUNS_PER_KIND: Final = 5
# Judgement: so many training cases stand among harmless events and neutral lines, as failures in operation do. Node
# events are few, as nearly all are set aside before a classifier reads them.
TRAINING_NOISE: Final = TrainingNoise(share=0.25, most_events=20, log_blocks=4)
MAX_STEPS: Final = 120  # of a long run


def captured() -> list[LabelledCase]:
    """Return the stored cases, which are runs of programs with real failures.

    Raises:
        DatasetError: a file does not follow the format.
    """
    folder = files("classifiers").joinpath("data", "captured")
    return [case for file in case_files(folder) for case in read_file(file)]


def composed(seed: int = SEED) -> list[LabelledCase]:
    """Return the cases of all kinds in `classifiers/data/kinds`.

    Raises:
        ValueError: a kind does not follow the format; the message names file and kind.
    """
    routine_lines = kinds.routine_lines()
    return [parse(raw, str(raw["id"])) for kind in kinds.read() for raw in compose(kind, routine_lines, seed)]


def long_run_objects(seed: int = LONG_RUN_SEED) -> list[dict[str, Any]]:
    """Compose runs of many ranks and steps, a few of each kind of failure, as labelled-case/1 objects."""
    return [
        long_run.compose(kind, f"{kind.name}-{seed}-{number}", MAX_STEPS)
        for kind in failure_kinds.read()
        for number in range(LONG_RUNS_PER_KIND)
    ]


def long_runs(seed: int = LONG_RUN_SEED) -> list[LabelledCase]:
    """Compose runs of many ranks and steps, a few of each kind of failure."""
    return [parse(raw, str(raw["id"])) for raw in long_run_objects(seed)]


def packaged(noise: TrainingNoise | None = None) -> list[LabelledCase]:
    """Return all packaged training cases, in a fixed order.

    Args:
        noise: adds harmless node events and neutral log lines to a share of them; None adds nothing.

    Raises:
        DatasetError: a case does not follow the format, or an id occurs twice.
        ValueError: a kind does not follow its format.
    """
    cases = [*captured(), *composed(), *long_runs()]
    check_ids(cases)
    return cases if noise is None else with_noise(cases, noise)
