"""Labelled cases: the format of training cases, cases for evaluation and operators' corrections.

`labelled-case/1` is one JSON object a line (`*.jsonl`, UTF-8, or `*.jsonl.zst`):

    {
      "schema": "labelled-case/1",                # optional
      "id": "torchrun-oom-3-s1",                  # unique
      "group": "ddp-oom",                         # one origin (program or composition): never on both sides of a split
      "kind": "ddp-cuda-oom",                     # what makes two failures the same kind; held out together in training
      "event": {...},                             # job-completion/1, log tails inline: logs[].tail; node_events[].text
      "labels": {
        "side": "user",         "side_ok": ["user"],             # *_ok: every label a reasonable expert could defend,
        "cause": "USER.1",      "cause_ok": ["USER.1"],          #   best one included; absent: just the label
        "category": "DL.1",     "category_ok": ["DL.1"],         # a code of axis ii or "none"
        "symptom": "D.1.2",     "symptom_ok": ["D.1.2", "none"], # a code of axis iii or "none" (single process)
        "retry": "futile",      "retry_ok": ["futile"],          # helps | helps_elsewhere | after_repair | futile
        "root_rank": 2,                                          # rank where it began, null: not known, or one process
        "root_line": "torch.OutOfMemoryError: CUDA out of ..."   # text of the first failing line, null: none in the log
      },
      "provenance": {
        "origin": "captured",                     # captured | composed | operator
        "program": "ddp_oom.py", "framework": "pytorch", "version": "2.11.0",
        "launcher": "torchrun", "ranks": 4, "seed": 1,
        "medium": "log",                          # composed: log, or report (what a person writes)
        "source": "users of PyTorch",             # composed: where the wording is from
        "labelled_for": "symptom",                # composed: the only axis whose label is certain; absent: all are
        "decidable": false,                       # whether event and log suffice to tell the side; absent: one side_ok
        "who": null, "when": "2026-11-20T10:00:00Z"
      },
      "weight": 1.0                               # optional, above 0 up to 100: how much the case counts in training
    }

`event` needs `status`; of the rest (contract job-completion/1) what classification reads is used: exit_code, signal,
scheduler, reason, message, framework, nodes, gpus, started_at, ended_at, logs, node_events ... A case stores the whole
run once: the windows in which logs reach operators (tail, first error alone, one rank alone, launcher's summary alone,
without exit code and scheduler words) are cut in training, not stored. In a long run keep each stream's tail up to
64 KiB. Text is passed through redaction when a corpus is written (`classifiers.redaction.redact_json`).

Only side, cause, category, symptom and retry are required labels; where an operator does not know one it is null and
that axis learns nothing from the case.
"""

import hashlib
import io
import reprlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources.abc import Traversable
from typing import IO, Any, get_args

import orjson
import zstandard

from classifiers import taxonomy
from classifiers.case_builder import build_case, nests_deeper, whole_number
from classifiers.contracts import STATUSES, RawCase
from classifiers.taxonomy import RetryOutlook

SCHEMA = "labelled-case/1"
NONE = "none"
AXES = taxonomy.AXES
WEAK_CLASS = 10  # a class with fewer cases is one of few cases (judgement)
ORIGINS = ("captured", "composed", "operator")
MAX_WEIGHT = 100.0
DEEPEST = 100  # as for an event
# Judgement: a case of an event of the largest size, and all cases of a file, which are in memory together. A file may
# be a device without an end, or unpack to a thousand times its size.
LINE_BYTES = 32 * 1024 * 1024
FILE_BYTES = 1024 * 1024 * 1024


class DatasetError(ValueError):
    """A labelled case is not as the format asks. `place` is file and line, `field` the field, `expected` what fits."""

    def __init__(self, place: str, field: str, expected: str, got: Any) -> None:
        shown = got if isinstance(got, str) else reprlib.repr(got)  # of a value that nests, the outer levels
        super().__init__(f"{place}: {field}: expected {expected}, got {shown[:80]}")
        self.place = place
        self.field = field
        self.expected = expected
        self.got = shown[:80]


@dataclass(frozen=True, slots=True)
class Labels:
    """The truth of one case. `best` holds a label an axis (None: not known), `allowed` all that count as right."""

    best: Mapping[str, str | None]
    allowed: Mapping[str, tuple[str, ...]]
    root_rank: int | None = None
    root_line: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """One labelled failure: input, truth, and where it comes from."""

    id: str
    group: str
    kind: str
    raw: RawCase
    labels: Labels
    provenance: Mapping[str, Any]
    weight: float = 1.0
    event: Mapping[str, Any] = field(default_factory=dict, repr=False)


@cache
def codes_of(axis: str) -> tuple[str, ...]:
    """The labels that an axis of `AXES` may have."""
    axes = taxonomy.load()
    known: dict[str, tuple[str, ...]] = {
        "side": tuple(axes.sides),
        "cause": tuple(axes.causes),
        "category": (*axes.categories, NONE),
        "symptom": (*axes.symptoms, NONE),
        "retry": get_args(RetryOutlook),
    }
    return known[axis]


def _labels(raw: Any, place: str) -> Labels:
    if not isinstance(raw, dict):
        raise DatasetError(place, "labels", "an object", raw)
    best: dict[str, str | None] = {}
    allowed: dict[str, tuple[str, ...]] = {}
    for axis in AXES:
        codes = codes_of(axis)
        if axis not in raw:
            raise DatasetError(place, f"labels.{axis}", "a code, or null where it is not known", "nothing")
        label = raw[axis]
        if label is not None and label not in codes:
            raise DatasetError(place, f"labels.{axis}", f"one of {', '.join(codes)}", label)
        fine = raw.get(f"{axis}_ok")
        if fine is None:
            fine = [] if label is None else [label]
        if not isinstance(fine, list) or any(code not in codes for code in fine):
            raise DatasetError(place, f"labels.{axis}_ok", f"a list of {', '.join(codes)}", fine)
        if label is not None and label not in fine:
            raise DatasetError(place, f"labels.{axis}_ok", f"a list with {label} in it", fine)
        best[axis], allowed[axis] = label, tuple(fine)
    if best["cause"] and best["side"] and taxonomy.load().side_of(best["cause"]) not in allowed["side"]:
        raise DatasetError(place, "labels.cause", f"a cause of side {best['side']}", best["cause"])
    rank, line = raw.get("root_rank"), raw.get("root_line")
    if rank is not None and (whole_number(rank) is None or rank < 0):
        raise DatasetError(place, "labels.root_rank", "a whole number from 0, or null", rank)
    if line is not None and not isinstance(line, str):
        raise DatasetError(place, "labels.root_line", "the line's text, or null", line)
    return Labels(best=best, allowed=allowed, root_rank=rank, root_line=line)


def _checked_event(event: Any, place: str) -> dict[str, Any]:
    if not isinstance(event, dict):
        raise DatasetError(place, "event", "a job-completion/1 object", event)
    if event.get("status") not in STATUSES:
        raise DatasetError(place, "event.status", f"one of {', '.join(STATUSES)}", event.get("status"))
    for key in ("logs", "node_events"):
        value = event.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise DatasetError(place, f"event.{key}", "a list of objects", value)
    return event


def parse(raw: Any, place: str) -> LabelledCase:
    """One decoded labelled-case/1 object.

    Raises:
        DatasetError: a field is missing or not as asked.
    """
    if not isinstance(raw, dict):
        raise DatasetError(place, "case", "a JSON object", raw)
    if nests_deeper(raw, DEEPEST):
        raise DatasetError(place, "case", f"JSON nested at most {DEEPEST} levels deep", raw)
    if raw.get("schema", SCHEMA) != SCHEMA:
        raise DatasetError(place, "schema", SCHEMA, raw["schema"])
    for key in ("id", "group", "kind"):
        if not isinstance(raw.get(key), str) or not raw[key]:
            raise DatasetError(place, key, "a text", raw.get(key))
    event = _checked_event(raw.get("event"), place)
    provenance = raw.get("provenance")
    if not isinstance(provenance, dict) or provenance.get("origin") not in ORIGINS:
        raise DatasetError(place, "provenance.origin", f"one of {', '.join(ORIGINS)}", provenance)
    weight = raw.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= MAX_WEIGHT:
        raise DatasetError(place, "weight", f"a number above 0, at most {MAX_WEIGHT:g}", weight)
    return LabelledCase(
        id=raw["id"],
        group=raw["group"],
        kind=raw["kind"],
        raw=build_case(event),
        labels=_labels(raw.get("labels"), place),
        provenance=provenance,
        weight=float(weight),
        event=event,
    )


def read_lines(lines: Iterable[bytes | str], name: str) -> Iterator[LabelledCase]:
    """The cases of a JSON-lines text, empty lines left out.

    Raises:
        DatasetError: a line is not JSON or not a labelled case; the text names `name` and the line.
    """
    for place, raw in json_lines(lines, name):
        yield parse(raw, place)


def json_lines(lines: Iterable[bytes | str], name: str) -> Iterator[tuple[str, Any]]:
    """The place (`name` and the line) and the value of each line of a JSON-lines text, empty lines left out.

    Raises:
        DatasetError: a line is not JSON; the text names the place.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{name}:{number}"
        try:
            yield place, orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise DatasetError(place, "line", "JSON", str(error)) from error


def read_file(file: Traversable) -> list[LabelledCase]:
    """All cases of a `.jsonl` or `.jsonl.zst` file.

    Raises:
        DatasetError: a line is not a labelled case, the file is not packed as its name says, or it is too large.
        OSError: the file can't be read.
    """
    with opened_lines(file) as lines:
        return list(read_lines(lines, file.name))


@contextmanager
def opened_lines(file: Traversable) -> Iterator[Iterator[bytes]]:
    """The lines of a file, unpacked if its name ends with `.zst`, to be read in the `with` block.

    Raises:
        DatasetError: a line or the file is too large, or the file is not packed as its name says.
        OSError: the file can't be read.
    """
    try:
        with file.open("rb") as raw:
            if not file.name.endswith(".zst"):
                yield _bounded_lines(raw, file.name)
                return
            unpacked = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            with io.BufferedReader(unpacked) as source:
                yield _bounded_lines(source, file.name)
    except zstandard.ZstdError as error:
        raise DatasetError(file.name, "file", "a zstd frame", str(error)) from error


def _bounded_lines(source: IO[bytes], name: str) -> Iterator[bytes]:
    size = number = 0
    while line := source.readline(LINE_BYTES + 1):
        number, size = number + 1, size + len(line)
        if len(line) > LINE_BYTES:
            raise DatasetError(f"{name}:{number}", "line", f"at most {LINE_BYTES:,} bytes", "more")
        if size > FILE_BYTES:
            raise DatasetError(name, "file", f"at most {FILE_BYTES:,} bytes of cases", "more")
        yield line.removeprefix(BOM_UTF8) if number == 1 else line


def case_files(folder: Traversable) -> list[Traversable]:
    """All case files under a folder, sub-folders included, in order of name."""
    found: list[Traversable] = []
    for entry in sorted(folder.iterdir(), key=lambda path: path.name):
        if entry.is_dir():
            found += case_files(entry)
        elif entry.name.endswith((".jsonl", ".jsonl.zst")):
            found.append(entry)
    return found


def check_ids(cases: Iterable[LabelledCase]) -> None:
    """Check that no id occurs twice.

    Raises:
        DatasetError: one does.
    """
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise DatasetError("corpus", "id", "an id that occurs once", case.id)
        seen.add(case.id)


def ordered(cases: Iterable[LabelledCase]) -> list[LabelledCase]:
    """The cases by id: what is fitted in this order does not depend on the files that they come from."""
    return sorted(cases, key=lambda case: case.id)


def digest(cases: Iterable[LabelledCase]) -> str:
    """SHA-256 over the cases' content, whatever their order: the same data gives the same digest."""
    parts = sorted(
        orjson.dumps(
            [
                case.id,
                case.group,
                case.kind,
                case.event,
                dict(case.labels.best),
                dict(case.labels.allowed),
                case.weight,
            ],
            option=orjson.OPT_SORT_KEYS,
            default=str,
        )
        for case in cases
    )
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()
