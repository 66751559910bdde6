"""How well a case is covered by what the classifier knows, for drift monitoring. It decides nothing."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from classifiers.contracts import InputMeasures, LogStream
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.extraction.scan import LANDMARKS

# Versions are printed at the start of a program, or in its last traceback.
_SEARCHED: Final = 8_000  # characters at each end of a stream
_STREAMS: Final = 4  # logs that are searched (judgement)
# Most literals hold one of these: a text without it is not searched for them, which saves most of the time.
_COMMON: Final = ("ersion", "==")
_MATCHED: Final = 120  # characters from a literal on
_VERSIONS: Final = 12  # that are kept of a case (judgement)


@dataclass(frozen=True, slots=True)
class _Software:
    position: int
    name: str
    pattern: re.Pattern[str]


def measure(extracted: ExtractedCase, streams: Sequence[LogStream], known: float) -> InputMeasures:
    """The measures of one case.

    Args:
        extracted: the case with its evidence.
        streams: its logs.
        known: share of its features (words, pairs of words, catalogue entries) that the model knows, 0..1.
    """
    lines = [
        item for item in extracted.items if item.set_aside is None and not item.from_scheduler and not item.derived
    ]
    unmatched = sum(not line.hits for line in lines)
    absent = frozenset(LANDMARKS) - extracted.landmarks
    return InputMeasures(round(1.0 - known, 4), len(lines), unmatched, software_versions(streams, absent))


def software_versions(streams: Sequence[LogStream], absent: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The software that logs name with its version, as `NCCL 2.20.5`, in the order of the catalogue; at most 12.

    Args:
        streams: the logs.
        absent: texts that none of the logs has.
    """
    parts = [(part, literals) for part, literals in _catalogue().items() if part not in absent]
    if not parts:
        return ()
    found: dict[_Software, str] = {}
    for stream in streams[:_STREAMS]:
        text = stream.text
        if len(text) > 2 * _SEARCHED:
            text = f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"
        for part, literals in parts:
            if part in text:
                for literal, one in literals:
                    at = text.find(literal)
                    matched = one.pattern.match(text, at, at + _MATCHED) if at >= 0 else None
                    if matched is not None:
                        found[one] = matched[1]
    ordered = sorted(found.items(), key=lambda item: item[0].position)
    return tuple(f"{one.name} {version}" for one, version in ordered[:_VERSIONS])


@cache
def _catalogue() -> dict[str, list[tuple[str, _Software]]]:
    """The literals with their software, by a part that they have in common, else by the literal itself."""
    data = tomllib.loads(files("classifiers").joinpath("software_versions.toml").read_text(encoding="utf-8"))
    found: defaultdict[str, list[tuple[str, _Software]]] = defaultdict(list)
    for position, entry in enumerate(data["software"]):
        one = _Software(position, entry["name"], re.compile(entry["pattern"]))
        for literal in entry["literals"]:
            found[next((part for part in _COMMON if part in literal), literal)].append((literal, one))
    return dict(found)
