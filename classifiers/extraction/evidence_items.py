"""Lines of evidence in the making: what extraction, features and judgement pass on among themselves."""

from dataclasses import dataclass, field
from typing import Final

from classifiers.contracts import Case
from classifiers.extraction.process_exits import Death
from classifiers.signatures import Signature
from classifiers.taxonomy import Role

NODE: Final = "node"
SCHEDULER: Final = "scheduler"
STRENGTH_ORDER: Final = {"decisive": 0, "strong": 1, "weak": 2}
ROLE_ORDER: Final[dict[Role, int]] = {"initiating": 0, "cascade": 1, "teardown": 2, "context": 3}


@dataclass(slots=True)
class Item:
    """One line of evidence in the making. `bucket`: how surely it began the failure, 0 most; `order`: place.

    `about`: ranks that the line says did not come or died, itself no beginning of its own rank. `death`: a launcher's
    line that tells how one process ended, other than by being told to; `ended`: the ranks or local ranks of all
    ends it tells. `likely`: the rank that most likely wrote a line
    which does not tell its own; `begin`: where its traceback
    begins, else its own offset. `ends`: a process does not outlive it (the last line of a traceback, a decisive entry).
    `unmarked`: the rank is only that of the stream. `place`: function and code where an exception was raised.
    """

    text: str
    role: Role
    bucket: float
    stream: int
    order: int
    offset: int
    number: int | None
    rank: int | None = None
    node: str | None = None
    gpu: int | None = None
    time: float | None = None
    hits: tuple[Signature, ...] = ()
    exception: str | None = None
    body: int = 0
    repeats: int = 0
    words: frozenset[str] = field(default_factory=frozenset)
    scheduler: bool = False
    about: tuple[int, ...] = ()
    death: bool = False
    ended: tuple[int, ...] = ()
    likely: int | None = None
    begin: int = 0
    ends: bool = False
    unmarked: bool = False
    place: str = ""

    @property
    def bare(self) -> str:
        """The line without its head (time, rank, host)."""
        return self.text[self.body :] if self.body < len(self.text) else self.text


@dataclass(slots=True)
class Extracted:
    """A case with what the classifier needs beyond it: the items in the order of the evidence, and the deaths told.

    `marks` and `stage`: what stands around the first item (`failure_stage`). `whole`: every line of logs so short
    that all of them is read, else none.
    """

    case: Case
    items: list[Item]
    deaths: list[Death]
    chars: int
    lines: int
    marks: tuple[str, ...] = ()
    stage: str = ""
    whole: tuple[str, ...] = ()
