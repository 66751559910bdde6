"""Reference policies: no resubmits, three blind retries, and an oracle that knows the cause."""

from tests.simulations.policy.engine import Engine, Work
from tests.simulations.policy.world import End

_AFTER = 0.02  # hours


class NoResubmits:
    """No automatic resubmit."""

    def ended(self, engine: Engine, work: Work, end: End) -> None:
        """Nothing."""

    def failed(self, engine: Engine, work: Work, end: End) -> None:
        """Nothing."""


class Blind(NoResubmits):
    """Every failure is retried at once, three times per job."""

    def __init__(self, most: int = 3) -> None:
        self._most = most

    def failed(self, engine: Engine, work: Work, end: End) -> None:  # noqa: ARG002 - it looks at nothing
        """Retry, whatever the failure was."""
        if work.runs <= self._most:
            engine.again(work, engine.now)


class Oracle(NoResubmits):
    """Knows the cause and the end of every fault: retries exactly where that helps, without the bad node."""

    def __init__(self) -> None:
        self._avoid: dict[int, frozenset[int]] = {}

    def failed(self, engine: Engine, work: Work, end: End) -> None:
        """Never for a bug; elsewhere for a node fault; after the end of any other fault."""
        if end.root.startswith("bug"):
            return
        avoid = self._avoid.get(work.job.number, frozenset())
        if end.node is not None:
            avoid |= {end.node}
            self._avoid[work.job.number] = avoid
            engine.again(work, engine.now, avoid)
        else:
            engine.again(work, max(engine.now, end.over_at + _AFTER), avoid)
