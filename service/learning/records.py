"""Records of site layers: plain frozen dataclasses, no SQL."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from classifiers.model.keyed_seal import is_seal_of, seal_of
from classifiers.model.site.layer import SiteLayerError, parse
from service.learning.shadow_figures import ShadowFigures

GateDecision = Literal["promote", "ask", "refuse"]
PACKAGED: Final = "packaged"  # stands for the packaged model alone
ROLLBACK_FROM: Final = "rollback from "  # with the layer that was in use, the reason of a rollback
ACCEPTED: Final = "accepted"  # what the seal of a layer says that may give verdicts
_MOST_KNOWN: Final = 200  # more layers than are stored
_known: dict[bytes, tuple[Mapping[str, Any], str | None]] = {}
REFUSED_BY: Final = "refused by "  # begins the first reason of a candidate that a person refused


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate's decision on a candidate, its reasons in words, and the figures that they rest on.

    `shadow`: the figures of its shadow run, which go on until it is promoted; None: there was none.
    """

    decision: GateDecision
    reasons: tuple[str, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)
    shadow: ShadowFigures | None = None

    @property
    def refusal(self) -> str | None:
        """A person's refusal in words, None if no person refused the candidate."""
        first = self.reasons[0] if self.decision == "refuse" and self.reasons else ""
        return first if first.startswith(REFUSED_BY) else None


@dataclass(frozen=True, slots=True)
class StoredLayer:
    """A site layer as stored; `text` is the layer as JSON, `seal` its keyed seal.

    The seal covers the text and what is known of it: the gate's decision, or that it was accepted, by being promoted.
    So nobody who can only write to the database can put a layer in use that nobody accepted.
    """

    id: str
    at: datetime
    who: str
    gate: GateResult
    text: str
    seal: str | None = None

    @property
    def about(self) -> Mapping[str, Any]:
        """What it rests on; nothing where it can't be read."""
        return _read(self.text)[0]

    @property
    def problem(self) -> str | None:
        """Why it can't be read; None if it can."""
        return _read(self.text)[1]

    @property
    def base(self) -> str | None:
        """The id of the packaged model that it was fitted on; None where it names none."""
        return self.about.get("base")

    @property
    def origin(self) -> tuple[str, str]:
        """The packaged model and the digest of the labels; the id where it names none.

        Ids differ by the time of fitting too: the same labels that are fitted again make a layer of another id.
        """
        about = self.about
        return (str(about["base"]), str(about["data"])) if {"base", "data"} <= about.keys() else (self.id, "")

    def is_sealed(self, key: bytes | None) -> bool:
        """Whether the seal is of this layer, its decision and this key; without a key every layer counts as sealed."""
        return self._says(self.gate.decision, key) or self.is_accepted(key)

    def is_accepted(self, key: bytes | None) -> bool:
        """Whether the seal says that the layer may give verdicts; without a key every layer counts as accepted."""
        return self._says(ACCEPTED, key)

    def seal_as(self, state: str, key: bytes) -> str:
        """The seal that says `state` of it: a decision of the gate, or `ACCEPTED`."""
        return seal_of(self._sealed_content(state), key)

    def _says(self, state: str, key: bytes | None) -> bool:
        return key is None or (self.seal is not None and is_seal_of(self.seal, self._sealed_content(state), key))

    def _sealed_content(self, state: str) -> bytes:
        return f"{state}\n{self.text}".encode()


def _read(text: str) -> tuple[Mapping[str, Any], str | None]:
    """What a layer rests on, and why it can't be read; kept, as reading a layer of 1,000 groups takes 0.1 s."""
    digest = hashlib.sha256(text.encode()).digest()
    found = _known.get(digest)
    if found is None:
        try:
            found = (parse(text).about, None)
        except SiteLayerError as error:
            found = ({}, str(error))
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[digest] = found
    return found


@dataclass(slots=True)
class Reclassified:
    """What a run that classifies stored failures again did.

    Attributes:
        read: failures that were classified again.
        changed: those whose verdict changed; with a dry run, those that would change.
        people: failures that a person judged, which stay.
        unreadable: failures whose event or logs retention removed.
        moves: number of changes by old and new side and cause.
        complete: whether the run reached the end.
    """

    read: int = 0
    changed: int = 0
    people: int = 0
    unreadable: int = 0
    moves: Counter[tuple[str, str]] = field(default_factory=Counter)
    complete: bool = False

    def add(self, other: "Reclassified") -> None:
        """Add the counts of another part of the run."""
        self.read += other.read
        self.changed += other.changed
        self.people += other.people
        self.unreadable += other.unreadable
        self.moves += other.moves


@dataclass(frozen=True, slots=True)
class ReclassificationRun:
    """A run on several machines: failures that ended since a time, with ids from `first` to `last`."""

    id: int
    since: datetime
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Promotion:
    """One change of the layer in use; `layer` is `PACKAGED` for the packaged model alone."""

    id: int
    at: datetime
    who: str
    layer: str
    reason: str


@dataclass(frozen=True, slots=True)
class RetrainSchedule:
    """When to retrain; 0 in both: never.

    Attributes:
        every_days: days after the newest candidate, if there are new labels.
        after_labels: number of new labels.
        promote: whether a candidate that the gate accepts is put in use; otherwise it waits for a person.
    """

    every_days: float = 0.0
    after_labels: int = 0
    promote: bool = False

    @property
    def is_set(self) -> bool:
        """Whether there is a schedule."""
        return bool(self.every_days or self.after_labels)
