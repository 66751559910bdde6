"""Kinds held out: what the corpus teaches about failures that it has not seen, for the model and simpler ones."""

from collections.abc import Callable, Sequence

from classifiers import training
from classifiers.artifact import Model
from classifiers.dataset import AXES, LabelledCase
from classifiers.evaluation import Answer, Evaluation, answer_of, majority, measure, signatures_only
from classifiers.judge import Calibration
from classifiers.pipeline import Diagnoser
from classifiers.signatures import Catalogue


def held_out(
    cases: Sequence[LabelledCase],
    catalogue: Catalogue,
    calibration: Calibration,
    *,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Evaluation:
    """Each case diagnosed by a model that has not seen its kind; the whole run, not its windows."""
    extractor = training.extractor_of(catalogue)
    everything = training.samples([*cases, *training.example_cases(catalogue)], extractor, seed)
    given = training.retry_given(cases)
    answers: dict[str, Answer] = {}
    folds = sorted({training.fold_of(case.kind, seed) for case in cases})
    for fold in folds:
        tell(f"fold {fold + 1} of {len(folds)}")
        text = training.fit_text(
            [one for one in everything if one.fold != fold], AXES, iterations=training.FOLD_ITERATIONS
        )
        diagnoser = Diagnoser(Model(text, calibration, given, {"name": training.NAME, "version": "fold"}), catalogue)
        outside = [case for case in cases if training.fold_of(case.kind, seed) == fold]
        for case, verdict in zip(outside, diagnoser.diagnose([case.raw for case in outside]), strict=True):
            answers[case.id] = answer_of(verdict)
    return measure("faultline, kind held out", cases, [answers[case.id] for case in cases])


def baselines(cases: Sequence[LabelledCase], catalogue: Catalogue) -> list[Evaluation]:
    """The two that a model must beat."""
    return [
        measure("majority", cases, majority(cases)),
        measure("signatures alone", cases, signatures_only([case.raw for case in cases], catalogue)),
    ]
