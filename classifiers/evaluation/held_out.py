"""Kinds held out: what the corpus teaches about failures that it has not seen, for the model and simpler ones."""

from collections import Counter
from collections.abc import Callable, Sequence

from classifiers.data.labelled_cases import AXES, LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation.measured_rates import Told
from classifiers.evaluation.metrics import Answer, Evaluation, answer_of, majority, measure, signatures_only
from classifiers.model import training
from classifiers.model.artifact import Model
from classifiers.model.fitting import fit_text, table_for
from classifiers.model.label_fusion import Calibration
from classifiers.model.samples import fold_of
from classifiers.model.windows import cut
from classifiers.signatures import Catalogue


def held_out(
    cases: Sequence[LabelledCase],
    catalogue: Catalogue,
    calibration: Calibration,
    *,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Evaluation, list[Told]]:
    """Each case diagnosed by a model that has not seen its kind: figures of the whole runs, answers to all windows."""
    table = table_for(cases, catalogue, seed)
    given = training.retry_given(cases)
    answers: dict[str, Answer] = {}
    told: list[Told] = []
    folds = sorted({fold_of(case.kind, seed) for case in cases})
    for fold in folds:
        tell(f"fold {fold + 1} of {len(folds)}")
        rows = [row for row, one in enumerate(table.samples) if one.fold != fold]
        text = fit_text(table, rows, AXES)
        diagnoser = Diagnoser(Model(text, calibration, given, {"name": training.NAME, "version": "fold"}), catalogue)
        outside = [case for case in cases if fold_of(case.kind, seed) == fold]
        for case, verdict in zip(outside, diagnoser.diagnose([case.raw for case in outside]), strict=True):
            answers[case.id] = answer_of(verdict)
        cuts = [(case, one) for case in outside for one in cut(case)]
        mass = Counter[str]()
        for case, one in cuts:
            mass[case.id] += one.weight  # type: ignore[assignment] # Counter of floats
        for (case, one), verdict in zip(cuts, diagnoser.diagnose([one.raw for _, one in cuts]), strict=True):
            told.append((case, answer_of(verdict), one.weight / mass[case.id]))
    return measure("faultline, kind held out", cases, [answers[case.id] for case in cases]), told


def baselines(cases: Sequence[LabelledCase], catalogue: Catalogue) -> list[Evaluation]:
    """The two that a model must beat."""
    return [
        measure("majority", cases, majority(cases)),
        measure("signatures alone", cases, signatures_only([case.raw for case in cases], catalogue)),
    ]
