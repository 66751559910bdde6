"""The policies to compare with: nobody acts, everything is tried three times, and one that knows the truth."""

from tests.simulations.policy.engine import Engine, Work
from tests.simulations.policy.world import End

_AFTER = 0.02  # hours


class Nobody:
    """No automatic resubmit."""

    def ended(self, engine: Engine, work: Work, end: End) -> None:
        """Nothing."""

    def failed(self, engine: Engine, work: Work, end: End) -> None:
        """Nothing."""


class Blind(Nobody):
    """Every failure is tried again at once, three times a job."""

    def __init__(self, most: int = 3) -> None:
        self._most = most

    def failed(self, engine: Engine, work: Work, end: End) -> None:  # noqa: ARG002 - it looks at nothing
        """Again, whatever it was."""
        if work.runs <= self._most:
            engine.again(work, engine.now)


class Oracle(Nobody):
    """Knows what happened and when it is over: tries again exactly where that helps, without the bad node."""

    def __init__(self) -> None:
        self._avoid: dict[int, frozenset[int]] = {}

    def failed(self, engine: Engine, work: Work, end: End) -> None:
        """Never for a bug; elsewhere for a node; when it is over for all else."""
        if end.root.startswith("bug"):
            return
        avoid = self._avoid.get(work.job.number, frozenset())
        if end.node is not None:
            avoid |= {end.node}
            self._avoid[work.job.number] = avoid
            engine.again(work, engine.now, avoid)
        else:
            engine.again(work, max(engine.now, end.over_at + _AFTER), avoid)
