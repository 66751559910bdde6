"""Names of what a case shows beside a single line. Catalogue entries name them in `needs` and `unless`.

`extraction.observations` and, with node events, `extraction.events` compute them.
"""

from typing import Final

FAULT_ON_SEVERAL_RANKS: Final = "observation.fault-on-several-ranks"
MEMORY_HELD_BY_OTHERS: Final = "observation.memory-held-by-others"
ONE_RANK_NOT_FINITE: Final = "observation.one-rank-not-finite"
COLLECTIVES_DIFFER: Final = "observation.collectives-differ"
SLOWED_DOWN: Final = "observation.slowed-down"
PATH_ON_OTHER_NODES: Final = "observation.path-on-other-nodes"
LEFT_EARLY: Final = "observation.left-early"
SOFTWARE_ON_OTHER_NODES: Final = "observation.software-on-other-nodes"
VERSIONS_DIFFER: Final = "observation.versions-differ"
ASKED_TO_END_FIRST: Final = "observation.asked-to-end-first"
DISK_FILLED_BY_JOB: Final = "observation.disk-filled-by-job"
SAME_DEVICE_AGAIN: Final = "observation.same-device-again"
BUSY_ELSEWHERE: Final = "observation.busy-elsewhere"
STORAGE_SLOWED: Final = "observation.storage-slowed"
ALIVE_WHEN_GIVEN_UP: Final = "observation.alive-when-given-up"
WORKED_MEANWHILE: Final = "observation.worked-meanwhile"
PATH_WRITTEN_BEFORE: Final = "observation.path-written-before"
PATH_OF_ANNOUNCED_WORK: Final = "observation.path-of-announced-work"
SERVER_LOST_BY_SEVERAL: Final = "observation.server-lost-by-several"
SAME_STEP_AGAIN: Final = "observation.same-step-again"
MEMORY_HELD_BY_SELF: Final = "observation.memory-held-by-self"
EVICTED_AGAIN: Final = "observation.evicted-again"
MEMORY_GREW: Final = "observation.memory-grew"
SILENT_UNTIL_LIMIT: Final = "observation.silent-until-limit"
OBSERVATIONS: Final = frozenset({
    FAULT_ON_SEVERAL_RANKS, MEMORY_HELD_BY_OTHERS, ONE_RANK_NOT_FINITE, COLLECTIVES_DIFFER, SLOWED_DOWN, LEFT_EARLY,
    PATH_ON_OTHER_NODES, SOFTWARE_ON_OTHER_NODES, VERSIONS_DIFFER, ASKED_TO_END_FIRST, DISK_FILLED_BY_JOB,
    SAME_DEVICE_AGAIN, BUSY_ELSEWHERE, STORAGE_SLOWED, ALIVE_WHEN_GIVEN_UP, WORKED_MEANWHILE, PATH_WRITTEN_BEFORE,
    PATH_OF_ANNOUNCED_WORK, SERVER_LOST_BY_SEVERAL, SAME_STEP_AGAIN,
    MEMORY_HELD_BY_SELF, EVICTED_AGAIN, MEMORY_GREW, SILENT_UNTIL_LIMIT})  # fmt: skip
