"""The GPUs of the demo's cluster: which job holds which, so that no two jobs hold the same."""

from collections.abc import Collection
from dataclasses import dataclass, field

GPUS_PER_NODE = 8


@dataclass(slots=True)
class Fleet:
    """Free GPUs by node. Jobs up to a node's size share a node; larger jobs hold whole nodes."""

    free: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: int) -> "Fleet":
        """A fleet of empty nodes gpu001, gpu002 ..."""
        return cls({f"gpu{number:03d}": GPUS_PER_NODE for number in range(1, nodes + 1)})

    def take(self, gpus: int, *, exclude: Collection[str] = (), prefer: str | None = None) -> tuple[str, ...]:
        """Hold GPUs; returns their nodes, none if the job has to wait.

        Args:
            gpus: the size of the job.
            exclude: nodes that the job avoids.
            prefer: a node that is used if it has room.
        """
        share = min(gpus, GPUS_PER_NODE)
        count = -(-gpus // GPUS_PER_NODE)
        # The fullest nodes first, so that whole nodes stay free for large jobs.
        fitting = sorted(
            (node for node, left in self.free.items() if left >= share and node not in exclude),
            key=lambda node: (node != prefer, self.free[node], node),
        )
        chosen = tuple(fitting[:count])
        if len(chosen) < count:
            return ()
        for node in chosen:
            self.free[node] -= share
        return chosen

    def give_back(self, nodes: Collection[str], gpus: int) -> None:
        """Release the GPUs of a job."""
        for node in nodes:
            self.free[node] += min(gpus, GPUS_PER_NODE)
