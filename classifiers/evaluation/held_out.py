"""Evaluation on held-out cases: each is classified by a model that has not seen its kind, its family or its source."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from classifiers.data.labelled_cases import LabelledCase, ordered
from classifiers.diagnoser import Diagnoser
from classifiers.evaluation.measured_rates import WeightedAnswer
from classifiers.evaluation.metrics import Answer, answer_of
from classifiers.model import beginnings, constants
from classifiers.model.artifact import Model
from classifiers.model.case_views import views_of
from classifiers.model.fitting import fit_text
from classifiers.model.packaged_scores import PackagedClassifier
from classifiers.model.samples import fold_of
from classifiers.model.training import retry_shares
from classifiers.model.training_table import SampledCases, table_for
from classifiers.signatures import Catalogue

Unit = Callable[[LabelledCase], str]


def kind_of(case: LabelledCase) -> str:
    """The kind of failure."""
    return case.kind


def family_of(case: LabelledCase) -> str:
    """The program of a captured case, the file of kinds of a composed one; else the group."""
    return str(case.provenance.get("program") or case.group)


def source_of(case: LabelledCase) -> str:
    """What the wording is from: of a captured case the folder of its program, of a composed one the kind's source."""
    if case.provenance.get("origin") == "captured":
        return family_of(case).partition("/")[0]
    return str(case.provenance.get("source") or case.group)


UNITS: Final[Mapping[str, Unit]] = {"kind": kind_of, "family": family_of, "source": source_of}


def held_out_answers(
    cases: Sequence[LabelledCase],
    catalogue: Catalogue,
    model: Model,
    *,
    seed: int = 0,
    unit: Unit = kind_of,
    training: Sequence[LabelledCase] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[list[Answer], list[WeightedAnswer]]:
    """Answers to each whole case, and to all views of all cases.

    Weights of lines and of beginnings, first stage and retry outlooks of causes are fitted once for each fold of kinds
    (or another `unit`), without that fold. Second stage and calibration are the model's: a few numbers, which its
    training fitted on held-out kinds.

    Args:
        cases: the cases to classify.
        catalogue: the signature catalogue.
        model: the model whose second stage and calibration are used.
        seed: of the folds.
        unit: what is held out as a whole.
        training: the cases to fit on, None for `cases`; units of the same name are held out of both.
        progress: receives a line of text for each fold.
    """
    answers: dict[str, Answer] = {}
    viewed: list[WeightedAnswer] = []
    folds = fold_diagnosers(cases, catalogue, model, seed=seed, unit=unit, training=training, progress=progress)
    for diagnoser, outside in folds:
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
    unit: Unit = kind_of,
    training: Sequence[LabelledCase] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Diagnoser, list[LabelledCase]]]:
    """For each fold of units: a diagnoser that has not seen them (but see `held_out_answers`), and their cases.

    It is fitted on `training`, or on `cases` if that is None.
    """
    folds = sorted({fold_of(unit(case), seed) for case in cases})
    known = ordered(cases if training is None else training)
    for fold in folds:
        progress(f"fold {fold + 1} of {len(folds)}")
        inside = [case for case in known if fold_of(unit(case), seed) != fold]
        table = table_for(inside, catalogue, seed)
        rows = [row for row, sample in enumerate(table.samples) if fold_of(unit(sample.case), seed) != fold]
        text = fit_text(table, rows, constants.AXES, seed=seed)
        fitted = replace(model, text=text, lines=table.lines, retry_by_cause=retry_shares(inside))
        chosen = beginnings.fit(SampledCases(PackagedClassifier(fitted, catalogue), table), inside, table.lines)
        yield (
            Diagnoser(replace(fitted, beginnings=chosen), catalogue),
            [case for case in cases if fold_of(unit(case), seed) == fold],
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
