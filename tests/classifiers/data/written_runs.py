"""Adds runs that people wrote to the training data: `python -m tests.classifiers.data.written_runs NEW.jsonl`.

The file has labelled-case/1 objects, each a failed job with the logs of its ranks and the events of its nodes. Logs and
events are shortened where the classifier reads the same of the shorter case, and each run goes to the file of its side
in `classifiers/data/whole_runs/`. A run whose id is there already replaces it.
"""

import argparse
import copy
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import classifiers
from classifiers import signatures
from classifiers.data.labelled_cases import DatasetError, json_lines, parse
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.extraction.extractor import SHORT_LOG_WITH_TIMES, Extractor
from classifiers.extraction.scan import Scanner
from classifiers.model import artifact
from classifiers.model.fusion_input import FusionInput, fusion_input
from classifiers.model.vectorizer import features
from tests.classifiers.data.test_no_real_hosts import PLACES
from tests.faultlab import case_files

FOLDER: Final = Path(classifiers.__file__).parent / "data" / "whole_runs"
AXIS: Final = "symptom"
_LONG: Final = 15  # characters; shorter lines are compared as a whole only (judgement)
_FAILURE: Final = re.compile(
    r"(?i)error|fail|exception|traceback|timeout|timed out|abort|kill|oom|xid|lost|refused|reset|denied|cannot|unable"
    r"|invalid|not found|no such|\bnan\b|signal|cancel|preempt|evict|ecc|hang|stuck|retry|corrupt|expired|unreach"
    r"|raise |critical|fatal|panic|assert"
)


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left of a log and of the node events.

    Attributes:
        first: lines from the beginning of a log.
        around: lines before and after each line that counts.
        last: lines from its end.
        failures: whether each line with a word of failure counts, beside the lines that are evidence.
        other_events: node events that are no evidence, None: all.
    """

    first: int
    around: int
    last: int
    failures: bool
    other_events: int | None


# From short to long: the first that leaves what the classifier reads as it is.
CUTS: Final = (
    Cut(3, 1, 5, failures=False, other_events=3),
    Cut(4, 2, 8, failures=False, other_events=3),
    Cut(6, 3, 15, failures=False, other_events=3),
    Cut(6, 3, 15, failures=True, other_events=3),
    Cut(8, 4, 20, failures=True, other_events=8),
    Cut(8, 4, 20, failures=True, other_events=None),
    Cut(20, 8, 40, failures=True, other_events=None),
)


class Shortener:
    """Shortens cases without a change of what a model reads of them."""

    def __init__(self, model: artifact.Model) -> None:
        self._lines = model.lines
        self._extractor = Extractor(Scanner(signatures.packaged()), model.lines.log_odds)

    def shortened(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The shortest form of a labelled-case/1 object of which features and votes are the same.

        The number of lines is no feature that has to stay.

        Raises:
            DatasetError: it is no labelled case.
        """
        extracted, read = self._read(raw)
        kept = _kept_texts(extracted, raw["labels"].get("root_line"))
        for cut in CUTS:
            shorter = _cut(raw, kept, cut)
            if self._read(shorter)[1] == read:
                return shorter
        return raw

    def _read(self, raw: dict[str, Any]) -> tuple[ExtractedCase, tuple[dict[str, float], FusionInput]]:
        extracted = self._extractor.extract(parse(raw, str(raw.get("id"))).raw)
        named = {name: round(value, 6) for name, value in features(extracted, self._lines).items()}
        return extracted, (named, replace(fusion_input(extracted), lines=0))


def _normal(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().lower()


def _kept_texts(extracted: ExtractedCase, root_line: str | None) -> frozenset[str]:
    """The lines and events that are evidence, and the labelled first line."""
    first = [extracted.first_line] if extracted.first_line else []
    texts = [item.text for item in (*extracted.items, *extracted.effects, *first)]
    return frozenset(map(_normal, [*texts, root_line or ""])) - {""}


def _counts(text: str, kept: frozenset[str]) -> bool:
    normal = _normal(text)
    return normal in kept or (
        len(normal) > _LONG and any(one in normal or normal in one for one in kept if len(one) > _LONG)
    )


def _cut(raw: dict[str, Any], kept: frozenset[str], cut: Cut) -> dict[str, Any]:
    shorter = copy.deepcopy(raw)
    logs = shorter["event"].get("logs") or []
    texts = [str(log.get("tail") or "") for log in logs]
    is_long = sum(map(len, texts)) > SHORT_LOG_WITH_TIMES
    last = cut.last
    while True:
        for log, text in zip(logs, texts, strict=True):
            log["tail"] = _cut_log(text, kept, cut, last)
        if not is_long or sum(len(log["tail"]) for log in logs) > SHORT_LOG_WITH_TIMES:
            break
        last += cut.last  # a long log stays one: short ones are read whole
    events = shorter["event"].get("node_events") or []
    if cut.other_events is not None and events:
        others = [event for event in events if not _counts(str(event.get("text")), kept)][cut.other_events :]
        shorter["event"]["node_events"] = [event for event in events if event not in others]
    return shorter


def _cut_log(text: str, kept: frozenset[str], cut: Cut, last: int) -> str:
    lines = text.split("\n")
    places = {*range(min(cut.first, len(lines))), *range(max(0, len(lines) - last), len(lines))}
    for place, line in enumerate(lines):
        if _counts(line, kept) or (cut.failures and _FAILURE.search(line)):
            places.update(range(max(0, place - cut.around), min(len(lines), place + cut.around + 1)))
    return "\n".join(lines[place] for place in sorted(places))


def add(new: Sequence[dict[str, Any]], shortener: Shortener, folder: Path = FOLDER) -> dict[str, int]:
    """Add runs to the files of their sides, and return how many runs each file has now.

    Raises:
        DatasetError: a run is no labelled case, has no side, or names a real place.
    """
    added = [_checked(raw, shortener) for raw in new]
    ids = {raw["id"] for raw in added}
    counts = {}
    for side in ("hardware", "system", "user"):
        file = folder / f"{side}.jsonl.zst"
        before = [json.loads(line) for line in case_files.read_lines(file)] if file.exists() else []
        runs = [raw for raw in before if raw["id"] not in ids]
        runs += [raw for raw in added if raw["labels"]["side"] == side]
        runs.sort(key=lambda raw: str(raw["id"]))
        case_files.write_lines(file, [json.dumps(raw, ensure_ascii=False, separators=(",", ":")) for raw in runs])
        counts[side] = len(runs)
    return counts


def _checked(raw: dict[str, Any], shortener: Shortener) -> dict[str, Any]:
    run = shortener.shortened(raw)
    if run["labels"].get("side") is None:
        raise DatasetError(str(run["id"]), "labels.side", "a side", None)
    if place := PLACES.search(json.dumps(run["event"])):
        raise DatasetError(str(run["id"]), "event", "no name of a real place", place[0])
    return {**run, "provenance": {**run["provenance"], "labelled_for": AXIS}}


def main(arguments: argparse.Namespace) -> None:
    """Add the runs of a file."""
    file: Path = arguments.file
    new = [raw for _, raw in json_lines(file.read_bytes().splitlines(), file.name)]
    print(add(new, Shortener(artifact.load(arguments.model))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="labelled-case/1 lines")
    parser.add_argument("--model", type=Path, required=True, help="folder of the trained model")
    main(parser.parse_args())
