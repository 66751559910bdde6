"""Training samples: views of the labelled cases and the catalogue's examples, with their weights.

A case weighs `weight` / (cases of its kind)^0.5, so that no program dominates, and its views share that weight.
"""

import gc
import math
import multiprocessing
import os
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from classifiers import garbage_collection
from classifiers.contracts import RawCase
from classifiers.data.labelled_cases import NONE, LabelledCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.model import beginnings, constants
from classifiers.model.beginnings import Candidates
from classifiers.model.case_views import FIRST_ERROR, WHOLE, CaseView, views_of
from classifiers.model.catalogue_examples import is_example
from classifiers.model.fusion_input import FusionInput, fusion_input
from classifiers.model.line_weights import LineWeights
from classifiers.model.vectorizer import features
from classifiers.signatures import Catalogue

# So that no process waits long for the last one: some cases take twenty times as long as others, and stand together.
_CHUNKS_PER_PROCESS: Final = 64
_CASES_AT_ONCE: Final = 64  # whose evidence is in memory at the same time
_READERS: Final[list[tuple[Extractor, LineWeights]]] = []  # what a worker process reads cases with


@dataclass(frozen=True, slots=True)
class WholeCase:
    """What a whole case shows: its features by name, what the second stage reads, and what it may have begun with."""

    features: dict[str, float]
    fusion: FusionInput
    candidates: Candidates


Inputs: TypeAlias = tuple[dict[str, float], FusionInput, WholeCase | None]
_Packed: TypeAlias = "tuple[list[str], list[tuple[array[int], array[float], FusionInput, WholeCase | None]]]"
# A view to read, and the whole case where that is wanted as well.
_Task: TypeAlias = tuple[RawCase, RawCase | None]


@dataclass(frozen=True, slots=True)
class Sample:
    """One view of a case, as the classifier reads it.

    Attributes:
        case: the case.
        raw: the part of it that the view shows.
        features: its features by name.
        fusion: what the second stage reads of it.
        weight: its weight on the axes that its case was made for.
        fold: the fold of its kind.
        view: the view's name.
        whole: the whole case, where the choice of beginnings is fitted on it; one sample of the case has it. Its
            candidates hold patterns, which are equal only to themselves: samples are compared without it.
    """

    case: LabelledCase
    raw: RawCase
    features: dict[str, float]
    fusion: FusionInput
    weight: float
    fold: int
    view: str = WHOLE
    whole: WholeCase | None = field(default=None, compare=False, repr=False)

    @property
    def is_example(self) -> bool:
        """Whether it is a line that the catalogue gives as an example."""
        return is_example(self.case)

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole case, or its first failing line."""
        return self.view in {WHOLE, FIRST_ERROR}

    @property
    def may_be_single_process(self) -> bool:
        """Whether the case may lack a symptom only because it had one process; then it is no sample of "none"."""
        return self.case.labels.best["category"] not in {None, NONE} or not self.fusion.distributed

    @property
    def has_arbitrary_category(self) -> bool:
        """Whether versions do not fit and no category is labelled: what breaks first is then arbitrary, not "none"."""
        labels = self.case.labels
        return labels.best["cause"] == "USER.4" and labels.allowed["category"] == (NONE,)

    def is_secondary(self, axis: str) -> bool:
        """Whether its case was composed for another axis, so that its label on this one is a guess."""
        return self.case.provenance.get("labelled_for") not in {None, axis}

    def weight_for(self, axis: str) -> float:
        """Its weight on an axis."""
        return self.weight * (constants.SECONDARY_AXIS_WEIGHT if self.is_secondary(axis) else 1.0)


def fold_of(kind: str, seed: int) -> int:
    """The fold of a kind: all its cases are in the same one."""
    return zlib.crc32(f"{seed}:{kind}".encode()) % constants.FOLDS


def samples(cases: Iterable[LabelledCase], catalogue: Catalogue, lines: LineWeights, seed: int) -> list[Sample]:
    """All samples of the cases, in their order. Many cases are extracted by several processes, with the same result."""
    with garbage_collection.paused():
        cases = list(cases)
        chosen = list(_weighted_views(cases))
        wanted = {case.id: case.raw for case in beginnings.one_of_each_kind(cases)}
        # Of several views of a case the first is the whole case, which is then read once.
        tasks = [(view.raw, wanted.pop(case.id, None)) for case, view, _ in chosen]
        inputs = _all_inputs(tasks, catalogue, lines)
        return [
            Sample(case, view.raw, named, fusion, weight, fold_of(case.kind, seed), view.name, whole)
            for (case, view, weight), (named, fusion, whole) in zip(chosen, inputs, strict=True)
        ]


def _weighted_views(cases: Sequence[LabelledCase]) -> Iterator[tuple[LabelledCase, CaseView, float]]:
    """Cases with their views and weights; after the first cases of a kind one view each, in turn."""
    per_kind = Counter(case.kind for case in cases)
    seen: Counter[str] = Counter()
    for case in cases:
        origin = str(case.provenance.get("origin"))
        limit = constants.VIEWS_OF_CAPTURED_CASE if origin == "captured" else constants.VIEWS_OF_CASE
        views = list(views_of(case, limit=limit))
        seen[case.kind] += 1
        if seen[case.kind] > constants.FULLY_VIEWED_CASES:
            views = [views[seen[case.kind] % len(views)]]
        own = constants.OPERATOR_WEIGHT if origin == "operator" else 1.0
        total = case.weight * own / math.sqrt(per_kind[case.kind])
        shared = math.sqrt(sum(view.weight for view in views))
        for view in views:
            yield case, view, total * view.weight / shared


def _all_inputs(tasks: Sequence[_Task], catalogue: Catalogue, lines: LineWeights) -> list[Inputs]:
    """What is read of each case, by as many processes as there are processors."""
    processes = _processors()
    if processes == 1 or len(tasks) < constants.CASES_WORTH_PROCESSES:
        return list(_inputs(Extractor(Scanner(catalogue), lines.log_odds), lines, tasks))
    size = math.ceil(len(tasks) / (processes * _CHUNKS_PER_PROCESS))
    chunks = [tasks[begin : begin + size] for begin in range(0, len(tasks), size)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _prepare_process, (catalogue, lines)) as pool:
        return [inputs for packed in pool.map(_packed_inputs, chunks) for inputs in _unpacked(packed)]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _inputs(extractor: Extractor, lines: LineWeights, tasks: Sequence[_Task]) -> Iterator[Inputs]:
    for begin in range(0, len(tasks), _CASES_AT_ONCE):
        some = tasks[begin : begin + _CASES_AT_ONCE]
        for (raw, wanted), case in zip(some, extractor.extract_all([raw for raw, _ in some]), strict=True):
            named, fusion = features(case, lines), fusion_input(case)
            whole = None
            if wanted is raw:
                whole = WholeCase(named, fusion, beginnings.candidates(case))
            elif wanted is not None:
                whole = read_whole(extractor, wanted, lines)
            yield named, fusion, whole


def read_whole(extractor: Extractor, raw: RawCase, lines: LineWeights) -> WholeCase:
    """What a whole case shows, read with these weights of lines."""
    extracted = extractor.extract(raw)
    return WholeCase(features(extracted, lines), fusion_input(extracted), beginnings.candidates(extracted))


def _prepare_process(catalogue: Catalogue, lines: LineWeights) -> None:
    gc.disable()
    _READERS.append((Extractor(Scanner(catalogue), lines.log_odds), lines))


def _packed_inputs(tasks: Sequence[_Task]) -> _Packed:
    """The inputs of some cases with each feature's name once: less to send between processes."""
    columns: dict[str, int] = {}
    rows = []
    for named, fusion, whole in _inputs(*_READERS[0], tasks):
        indices = array("l", [columns.setdefault(name, len(columns)) for name in named])
        rows.append((indices, array("d", named.values()), fusion, whole))
    return list(columns), rows


def _unpacked(packed: _Packed) -> Iterator[Inputs]:
    names, rows = packed
    for indices, values, fusion, whole in rows:
        yield {names[index]: value for index, value in zip(indices, values, strict=True)}, fusion, whole
