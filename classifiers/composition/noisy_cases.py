"""Labelled cases with noise for training: harmless node events and neutral log lines that are not part of the failure.

Only entries for training are used (`use = "fit"`); the robustness figures come from the others.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from classifiers.case_builder import build_case
from classifiers.composition.noise import Noise, add_noise
from classifiers.data.labelled_cases import LabelledCase


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
