"""Evaluation on held-out kinds: each case is classified by a model that has not seen its kind of failure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation.measured_rates import WeightedAnswer
from classifiers.evaluation.metrics import Answer, answer_of
from classifiers.model import constants
from classifiers.model.artifact import Model
from classifiers.model.case_views import views_of
from classifiers.model.fitting import fit_text
from classifiers.model.samples import fold_of
from classifiers.model.training_table import table_for
from classifiers.signatures import Catalogue


def held_out_answers(
    cases: Sequence[LabelledCase],
    catalogue: Catalogue,
    model: Model,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[list[Answer], list[WeightedAnswer]]:
    """Answers to each whole case, and to all views of all cases.

    The first stage is fitted once for each fold of kinds, without that fold. Second stage and calibration are the
    model's: a few numbers, which its training fitted out of fold.
    """
    answers: dict[str, Answer] = {}
    viewed: list[WeightedAnswer] = []
    for diagnoser, outside in fold_diagnosers(cases, catalogue, model, seed=seed, progress=progress):
        for case, verdict in zip(outside, diagnoser.diagnose([case.raw for case in outside]), strict=True):
            answers[case.id] = answer_of(verdict)
        viewed += _viewed(diagnoser, outside)
    return [answers[case.id] for case in cases], viewed


def fold_diagnosers(
    cases: Sequence[LabelledCase],
    catalogue: Catalogue,
    model: Model,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Diagnoser, list[LabelledCase]]]:
    """For each fold of kinds: a diagnoser whose first stage has not seen them, and their cases."""
    table = table_for(cases, catalogue, seed)
    folds = sorted({fold_of(case.kind, seed) for case in cases})
    for fold in folds:
        progress(f"fold {fold + 1} of {len(folds)}")
        rows = [row for row, sample in enumerate(table.samples) if sample.fold != fold]
        text = fit_text(table, rows, constants.AXES, seed=seed)
        yield (
            Diagnoser(replace(model, text=text), catalogue),
            [case for case in cases if fold_of(case.kind, seed) == fold],
        )


def _viewed(diagnoser: Diagnoser, cases: Sequence[LabelledCase]) -> list[WeightedAnswer]:
    """Answers to all views of the cases; the weights of the views of a case sum to one."""
    views = [(case, view) for case in cases for view in views_of(case)]
    totals: dict[str, float] = {}
    for case, view in views:
        totals[case.id] = totals.get(case.id, 0.0) + view.weight
    verdicts = diagnoser.diagnose([view.raw for _, view in views])
    return [
        (case, answer_of(verdict), view.weight / totals[case.id])
        for (case, view), verdict in zip(views, verdicts, strict=True)
    ]
