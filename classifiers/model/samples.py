"""What a model is fitted on: cases cut into windows, the catalogue's own examples, and the weight of each.

Each case is learned from in several windows (`windows`); of many runs of one kind only the first few are
cut. A case weighs `weight` / (cases of its kind)^0.5, so that no program speaks loudest. An operator's own case counts
`OPERATOR_WEIGHT` times a packaged one; on axes that it was not composed for (`labelled_for`) a case counts `ASIDE`.
"""

import gc
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from classifiers import taxonomy
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.data.labelled_cases import NONE, LabelledCase, Labels
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.model.vectorizer import features, is_distributed
from classifiers.model.windows import cut
from classifiers.signatures import Catalogue, Signature

OPERATOR_WEIGHT: Final = 3.0
ASIDE: Final = 0.07
FOLDS: Final = 3
_CUT_CASES: Final = 2
_MOST_WINDOWS: Final = {"captured": 3}
_REAL_ALTERNATIVE: Final = 0.15


@dataclass(slots=True)
class Sample:
    """One window of a case as the classifier sees it. `example`: it is a line of the catalogue's."""

    case: LabelledCase
    extracted: ExtractedCase
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
        return self.case.provenance.get("labelled_for") not in {None, axis}

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


def samples(cases: Iterable[LabelledCase], catalogue: Catalogue, seed: int) -> list[Sample]:
    """All windows of all cases, with their weights, in the order of the cases."""
    with _uncollected():
        return _samples(list(cases), extractor_of(catalogue), seed)


def _samples(cases: Sequence[LabelledCase], extractor: Extractor, seed: int) -> list[Sample]:
    per_kind = Counter(case.kind for case in cases)
    met: Counter[str] = Counter()
    out: list[Sample] = []
    for case in cases:
        origin = str(case.provenance.get("origin"))
        windows = list(cut(case, most=_MOST_WINDOWS.get(origin, 4)))
        met[case.kind] += 1
        if met[case.kind] > _CUT_CASES:  # more runs of a kind add little: one window each, in turn
            windows = [windows[met[case.kind] % len(windows)]]
        total = case.weight * (OPERATOR_WEIGHT if origin == "operator" else 1.0) / per_kind[case.kind] ** 0.5
        mass = sum(one.weight for one in windows) ** 0.5
        for one in windows:
            extracted = extractor.extract(one.raw)
            out.append(
                Sample(
                    case=case,
                    extracted=extracted,
                    row=features(extracted),
                    weight=total * one.weight / mass,
                    fold=fold_of(case.kind, seed),
                    window=one.name,
                    example=case.id.startswith("entry:"),
                )
            )
    return out
