"""What several lines of a case show together, by name.

Catalogue entries may name an observation in `needs` and `unless`, as they name other entries, so that a line can mean
something else where the case shows more than the line. `observation_names` lists them; those that need the events of
nodes too are computed in `extraction.events` and `extraction.passes`.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from classifiers.contracts import JobFacts
from classifiers.extraction.observations.memory import (
    ENDED_FOR_MEMORY,
    OUT_OF_MEMORY,
    OUT_OF_NODE_MEMORY,
    grew_without_end,
    is_held_by_others,
    is_held_by_self,
)
from classifiers.extraction.observations.other_nodes import (
    NOT_INSTALLED,
    NOT_THERE,
    path_on_other_nodes,
    software_on_other_nodes,
    versions_differ,
)
from classifiers.extraction.observations.other_ranks import (
    ASKED_TO_END,
    MEMORY_FAULTS,
    NOT_FINITE,
    collectives_differ,
    fault_on_several_ranks,
    is_asked_to_end_first,
    left_early,
    one_rank_not_finite,
)
from classifiers.extraction.observations.paths import (
    LOST_PATHS,
    REFUSED_PATHS,
    is_of_announced_work,
    was_written_before,
)
from classifiers.extraction.observations.phases import (
    COLLECTIVE_TIMEOUTS,
    MISSED_HEARTBEATS,
    has_slow_storage,
    is_alive_when_given_up,
    works_while_others_wait,
)
from classifiers.extraction.observations.recurrence import DEVICE_FAULTS, OWN_USE, is_at_same_step, is_evicted_again
from classifiers.extraction.observations.silence import silent_since
from classifiers.extraction.observations.slowdown import slowed_down
from classifiers.extraction.observations.stacks import is_busy_elsewhere
from classifiers.extraction.stream_reader import StreamText
from classifiers.observation_names import (
    ALIVE_WHEN_GIVEN_UP,
    ASKED_TO_END_FIRST,
    BUSY_ELSEWHERE,
    COLLECTIVES_DIFFER,
    EVICTED_AGAIN,
    FAULT_ON_SEVERAL_RANKS,
    LEFT_EARLY,
    MEMORY_GREW,
    MEMORY_HELD_BY_OTHERS,
    MEMORY_HELD_BY_SELF,
    ONE_RANK_NOT_FINITE,
    PATH_OF_ANNOUNCED_WORK,
    PATH_ON_OTHER_NODES,
    PATH_WRITTEN_BEFORE,
    SAME_STEP_AGAIN,
    SILENT_UNTIL_LIMIT,
    SLOWED_DOWN,
    SOFTWARE_ON_OTHER_NODES,
    STORAGE_SLOWED,
    VERSIONS_DIFFER,
    WORKED_MEANWHILE,
)
from classifiers.relevance.entry_groups import deadlines_reached, peer_lost, wait_timeouts


def observations(job: JobFacts, streams: Sequence[StreamText], present: AbstractSet[str]) -> frozenset[str]:
    """The observations that hold of a case.

    Args:
        job: the facts of the job.
        streams: its texts.
        present: the catalogue entries that match a line of the case. Most observations are about lines of a few
            entries, and are not looked for without one.
    """
    return frozenset(
        name
        for name, (entries, holds) in _OBSERVATIONS.items()
        if (entries is None or not present.isdisjoint(entries())) and holds(job, streams)
    )


_Holds: TypeAlias = Callable[[JobFacts, Sequence[StreamText]], bool]
# By observation: the entries of which one has to match a line, None where it is not about such lines; how it is made.
_OBSERVATIONS: Final[Mapping[str, tuple[Callable[[], frozenset[str]] | None, _Holds]]] = {
    EVICTED_AGAIN: (lambda: OWN_USE, lambda _job, streams: is_evicted_again(streams)),
    FAULT_ON_SEVERAL_RANKS: (lambda: MEMORY_FAULTS, fault_on_several_ranks),
    MEMORY_GREW: (lambda: ENDED_FOR_MEMORY, lambda _job, streams: grew_without_end(streams)),
    MEMORY_HELD_BY_OTHERS: (lambda: OUT_OF_NODE_MEMORY | OUT_OF_MEMORY, is_held_by_others),
    MEMORY_HELD_BY_SELF: (lambda: OUT_OF_MEMORY, lambda _job, streams: is_held_by_self(streams)),
    ONE_RANK_NOT_FINITE: (lambda: NOT_FINITE, one_rank_not_finite),
    COLLECTIVES_DIFFER: (lambda: COLLECTIVE_TIMEOUTS, collectives_differ),
    SLOWED_DOWN: (deadlines_reached, lambda _job, streams: slowed_down(streams)),
    STORAGE_SLOWED: (deadlines_reached, lambda _job, streams: has_slow_storage(streams)),
    SILENT_UNTIL_LIMIT: (deadlines_reached, lambda job, streams: silent_since(job, streams) is not None),
    LEFT_EARLY: (peer_lost, left_early),
    PATH_ON_OTHER_NODES: (lambda: NOT_THERE, path_on_other_nodes),
    SOFTWARE_ON_OTHER_NODES: (lambda: NOT_INSTALLED, software_on_other_nodes),
    PATH_WRITTEN_BEFORE: (lambda: REFUSED_PATHS, lambda _job, streams: was_written_before(streams)),
    PATH_OF_ANNOUNCED_WORK: (lambda: LOST_PATHS, lambda _job, streams: is_of_announced_work(streams)),
    SAME_STEP_AGAIN: (lambda: DEVICE_FAULTS, lambda _job, streams: is_at_same_step(streams)),
    VERSIONS_DIFFER: (None, versions_differ),
    ASKED_TO_END_FIRST: (lambda: ASKED_TO_END, lambda _job, streams: is_asked_to_end_first(streams)),
    BUSY_ELSEWHERE: (wait_timeouts, lambda _job, streams: is_busy_elsewhere(streams)),
    ALIVE_WHEN_GIVEN_UP: (lambda: MISSED_HEARTBEATS, lambda _job, streams: is_alive_when_given_up(streams)),
    WORKED_MEANWHILE: (lambda: COLLECTIVE_TIMEOUTS, lambda _job, streams: works_while_others_wait(streams)),
}
