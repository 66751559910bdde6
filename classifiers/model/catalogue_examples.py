"""The examples of the signature catalogue as one-line training cases."""

from typing import Final

from classifiers import taxonomy
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.data.labelled_cases import LabelledCase, Labels
from classifiers.model import constants
from classifiers.signatures import Catalogue, Signature

_PREFIX: Final = "entry:"
_SCHEDULER_LINES: Final = ("status=", "reason=", "message=")


def is_example(case: LabelledCase) -> bool:
    """Whether a case is an example of the catalogue."""
    return case.id.startswith(_PREFIX)


def example_cases(catalogue: Catalogue) -> list[LabelledCase]:
    """One case for each example line of an entry that says a cause; entries that are no onset have less weight."""
    cases = []
    for entry in catalogue.entries:
        if not entry.causes or entry.role in {"context", "teardown"}:
            continue
        job = _job_of(entry)
        role = 1.0 if entry.role == "initiating" else constants.EXAMPLE_WEIGHT_OF_CONSEQUENCE
        cases += [
            LabelledCase(
                id=f"{_PREFIX}{entry.id}:{number}",
                group=f"{_PREFIX}{entry.id}",
                kind=f"{_PREFIX}{entry.id}",
                raw=RawCase(job=job, streams=(LogStream(text=line),)),
                labels=_labels_of(entry, line),
                provenance={"origin": "composed", "source": entry.source},
                weight=constants.EXAMPLE_WEIGHT_OF_STRENGTH[entry.strength] * role,
            )
            for number, line in enumerate(entry.examples)
            if not line.startswith(_SCHEDULER_LINES)
        ]
    return cases


def _job_of(entry: Signature) -> JobFacts:
    """A failed job that fulfils the entry's conditions."""
    when = entry.when
    if when is None:
        return JobFacts(status="failed")
    return JobFacts(
        status=min(when.status, default="failed"),
        exit_code=min(when.exit_code, default=None),
        signal=min(when.signal, default=None),
        scheduler=min(when.scheduler, default=None),
    )


def _labels_of(entry: Signature, line: str) -> Labels:
    axes = taxonomy.load()
    best: dict[str, str | None] = {}
    allowed: dict[str, tuple[str, ...]] = {}
    for axis, weights in (("cause", entry.causes), ("category", entry.categories), ("symptom", entry.symptoms)):
        ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
        best[axis] = ranked[0][0] if ranked else None
        allowed[axis] = tuple(code for code, weight in ranked if weight > constants.ALTERNATIVE_LABEL_WEIGHT)
    best["side"] = axes.side_of(str(best["cause"]))
    allowed["side"] = tuple(dict.fromkeys(axes.side_of(code) for code in allowed["cause"]))
    best["retry"] = entry.retry
    allowed["retry"] = (entry.retry,) if entry.retry else ()
    return Labels(best=best, allowed=allowed, root_line=line)
