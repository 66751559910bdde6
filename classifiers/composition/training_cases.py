"""The packaged training cases.

Captured cases are stored (`classifiers/data/captured`, one packed file for each family of programs), and so are whole runs
that people wrote (`classifiers/data/whole_runs`, one packed file for each side). Composed cases are not stored: they are
generated from the kinds of failure when needed, and the same seed gives the same cases.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Final

from classifiers.case_builder import build_case
from classifiers.composition import kinds
from classifiers.composition.cases import compose
from classifiers.composition.long_runs import failure_kinds
from classifiers.composition.long_runs import run as long_run
from classifiers.composition.noise import Noise, add_noise
from classifiers.data.labelled_cases import LabelledCase, case_files, check_ids, parse, read_file


@dataclass(frozen=True, slots=True)
class TrainingNoise:
    """How training cases get noise.

    Attributes:
        share: share of the cases that get noise, 0..1. Texts that people wrote (`medium` "report") get none.
        most_events: at most so many node events in a case; small numbers are drawn more often.
        log_blocks: at most so many blocks of neutral lines in each log.
        seed: of all choices; the choices for a case depend on its id, not on the other cases.
    """

    share: float = 0.5
    most_events: int = 60
    log_blocks: int = 8
    seed: int = 0


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
    return _stored("captured")


def written_runs() -> list[LabelledCase]:
    """Return the stored runs with the logs of their ranks and the events of their nodes, written by many authors.

    Raises:
        DatasetError: a file does not follow the format.
    """
    return _stored("whole_runs")


def _stored(name: str) -> list[LabelledCase]:
    folder = files("classifiers").joinpath("data", name)
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
    cases = [*captured(), *written_runs(), *composed(), *long_runs()]
    check_ids(cases)
    return cases if noise is None else with_noise(cases, noise)


def with_noise(cases: Sequence[LabelledCase], setting: TrainingNoise) -> list[LabelledCase]:
    """Return the cases in order, a share of them with noise in event and raw case; ids and labels stay."""
    return [_noisy(case, setting) for case in cases]


def _noisy(case: LabelledCase, setting: TrainingNoise) -> LabelledCase:
    rng = random.Random(f"{setting.seed}/{case.id}/training")
    if case.provenance.get("medium") == "report" or rng.random() >= setting.share:
        return case
    count = round((setting.most_events + 1) ** rng.random()) - 1
    noise = Noise(use="fit", node_events=count, log_blocks=setting.log_blocks)
    event = add_noise(case.event, rng, noise, root_rank=case.labels.root_rank)
    return replace(case, event=event, raw=build_case(event))
