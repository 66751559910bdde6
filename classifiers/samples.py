"""What a model is fitted on: cases cut into windows, the catalogue's own examples, and the weight of each.

Each case is learned from in several windows (`classifiers.windows`); of many runs of one kind only the first few are
cut. A case weighs `weight` / (cases of its kind)^0.5, so that no program speaks loudest. An operator's own case counts
`OPERATOR_WEIGHT` times a packaged one; on axes that it was not composed for (`about`) a case counts `ASIDE`.
"""

import gc
import multiprocessing
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Final, TypeAlias

from classifiers import taxonomy
from classifiers.case import JobFacts, LogStream, RawCase
from classifiers.dataset import NONE, LabelledCase, Labels
from classifiers.evidence import Extractor
from classifiers.features import features, is_distributed
from classifiers.items import Extracted
from classifiers.scan import Scanner
from classifiers.signatures import Catalogue, Signature
from classifiers.windows import cut

OPERATOR_WEIGHT: Final = 3.0
ASIDE: Final = 0.07
FOLDS: Final = 3
_CUT_CASES: Final = 2
_MOST_WINDOWS: Final = {"captured": 3}
_REAL_ALTERNATIVE: Final = 0.15
_AT_ONCE: Final = 3000  # cases that a process reads at once; so few are read without any other

_Read: TypeAlias = tuple[str, float, Extracted, dict[str, float]]


@dataclass(slots=True)
class Sample:
    """One window of a case as the classifier sees it. `example`: it is a line of the catalogue's."""

    case: LabelledCase
    extracted: Extracted
    row: dict[str, float]
    weight: float
    fold: int
    window: str = "whole"
    example: bool = False

    @property
    def whole(self) -> bool:
        """Whether it is the case as it came, or the one line that began it."""
        return self.window in {"whole", "first error alone"}

    @property
    def may_be_single(self) -> bool:
        """Whether the case may lack a symptom only because it had one process: then it teaches nothing of symptoms."""
        return self.case.labels.best["category"] not in {None, NONE} or not is_distributed(self.extracted)

    def is_aside(self, axis: str) -> bool:
        """Whether it was composed for another axis: its label on this one is a guess."""
        return self.case.provenance.get("about") not in {None, axis}

    def weight_for(self, axis: str) -> float:
        """Its weight on an axis; little where it was composed for another."""
        return self.weight * (ASIDE if self.is_aside(axis) else 1.0)

    @property
    def shows_anyhow(self) -> bool:
        """Whether versions do not fit and no category is told: it shows as whatever breaks first, not as "none"."""
        labels = self.case.labels
        return labels.best["cause"] == "USER.4" and labels.allowed["category"] == (NONE,)


def extractor_of(catalogue: Catalogue) -> Extractor:
    """The extractor over a catalogue."""
    return Extractor(Scanner(catalogue))


def fold_of(kind: str, seed: int) -> int:
    """Which fold a kind is in: all its cases are in the same."""
    return zlib.crc32(f"{seed}:{kind}".encode()) % FOLDS


def _labels_of(entry: Signature, line: str) -> Labels:
    axes = taxonomy.load()
    best: dict[str, str | None] = {}
    allowed: dict[str, tuple[str, ...]] = {}
    for axis, weights in (("cause", entry.causes), ("category", entry.categories), ("symptom", entry.symptoms)):
        ranked = sorted(weights.items(), key=lambda one: (-one[1], one[0]))
        best[axis] = ranked[0][0] if ranked else None
        allowed[axis] = tuple(code for code, weight in ranked if weight > _REAL_ALTERNATIVE)
    best["side"] = axes.side_of(str(best["cause"]))
    allowed["side"] = tuple(dict.fromkeys(axes.side_of(code) for code in allowed["cause"]))
    best["retry"] = entry.retry
    allowed["retry"] = (entry.retry,) if entry.retry else ()
    return Labels(best=best, allowed=allowed, root_line=line)


def example_cases(catalogue: Catalogue) -> list[LabelledCase]:
    """The catalogue's examples as one-line cases; those of entries that begin nothing with less weight."""
    out = []
    for entry in catalogue.entries:
        if not entry.causes or entry.role in {"context", "teardown"}:
            continue
        weight = {"decisive": 1.0, "strong": 0.8, "weak": 0.3}[entry.strength]
        when = entry.when
        job = JobFacts(
            status=min(when.status) if when and when.status else "failed",
            exit_code=min(when.exit_code) if when and when.exit_code else None,
            signal=min(when.signal) if when and when.signal else None,
            scheduler=min(when.scheduler) if when and when.scheduler else None,
        )
        for number, line in enumerate(entry.examples):
            if line.startswith(("status=", "reason=", "message=")):
                continue
            out.append(
                LabelledCase(
                    id=f"entry:{entry.id}:{number}",
                    group=f"entry:{entry.id}",
                    kind=f"entry:{entry.id}",
                    raw=RawCase(job=job, streams=(LogStream(text=line),)),
                    labels=_labels_of(entry, line),
                    provenance={"origin": "composed", "source": entry.source},
                    weight=weight * (1.0 if entry.role == "initiating" else 0.4),
                )
            )
    return out


@dataclass(frozen=True, slots=True)
class _Planned:
    """A case with what depends on the other runs of its kind: its whole weight, and which single window it gives."""

    case: LabelledCase
    weight: float
    only: int | None


def _planned(cases: Sequence[LabelledCase]) -> Iterator[_Planned]:
    per_kind = Counter(case.kind for case in cases)
    met: Counter[str] = Counter()
    for case in cases:
        met[case.kind] += 1
        own = OPERATOR_WEIGHT if case.provenance.get("origin") == "operator" else 1.0
        # More runs of a kind add little: one window each, in turn.
        only = met[case.kind] if met[case.kind] > _CUT_CASES else None
        yield _Planned(case, case.weight * own / per_kind[case.kind] ** 0.5, only)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No search for cycles meanwhile: all that is read stays, and looking through it takes a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _read(planned: Sequence[_Planned], catalogue: Catalogue) -> list[list[_Read]]:
    """Of each case its windows: name, weight, what is found in it, its features."""
    extractor, out = extractor_of(catalogue), []
    with _uncollected():
        for one in planned:
            windows = list(cut(one.case, most=_MOST_WINDOWS.get(str(one.case.provenance.get("origin")), 4)))
            if one.only is not None:
                windows = [windows[one.only % len(windows)]]
            mass = sum(window.weight for window in windows) ** 0.5
            found = [(window, extractor.extract(window.raw)) for window in windows]
            out.append([(window.name, one.weight * window.weight / mass, had, features(had)) for window, had in found])
    return out


def _read_all(planned: Sequence[_Planned], catalogue: Catalogue) -> Iterator[list[_Read]]:
    if len(planned) <= _AT_ONCE:
        yield from _read(planned, catalogue)
        return
    parts = [planned[begin : begin + _AT_ONCE] for begin in range(0, len(planned), _AT_ONCE)]
    # Not forked: another thread of this process may hold a lock, and in a fork nobody would ever release it.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        for part in pool.map(_read, parts, repeat(catalogue)):
            yield from part


def samples(cases: Iterable[LabelledCase], catalogue: Catalogue, seed: int) -> list[Sample]:
    """All windows of all cases, with their weights, in the order of the cases; many are read by several processes."""
    planned = list(_planned(list(cases)))
    out: list[Sample] = []
    with _uncollected():
        for one, windows in zip(planned, _read_all(planned, catalogue), strict=True):
            case, fold, example = one.case, fold_of(one.case.kind, seed), one.case.id.startswith("entry:")
            out += [Sample(case, had, row, weight, fold, name, example) for name, weight, had, row in windows]
    return out
