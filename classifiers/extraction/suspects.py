"""Names the process, node and device where a failure most likely began.

In this order: the rank whose own error (no consequence of another's) came first; the rank that a launcher saw die by a
signal nobody here sends to others; the rank that others say did not come; the rank whose collectives are behind; the
rank that is silent while all others complain. A launcher's "root cause" counts only as far as nothing else speaks: it
is the first that one agent noticed.
"""

import re
from collections import Counter
from collections.abc import Sequence
from signal import SIGTERM
from typing import Final

from classifiers.contracts import RawCase, Suspect
from classifiers.extraction.evidence_items import Item
from classifiers.extraction.line_attribution import Speakers
from classifiers.extraction.process_exits import Death

_SURE: Final = 3.0
_SEQUENCES: Final = (
    re.compile(r"last enqueued (?:NCCL )?work: (\d+)"),
    re.compile(r"last completed (?:NCCL )?work: (\d+)"),
    re.compile(r"SeqNum=(\d+)"),
)
_GPU: Final = re.compile(r"\bGPU[ :]?#?(\d{1,2})\b|\bcuda:(\d{1,2})\b|\bdevice(?: ordinal)?[ =:](\d{1,2})\b")
_ECHO: Final = 2.4
_WAITED: Final = re.compile(r"(?i)timed? ?out|heartbeat|deadline exceeded|stall")
_PROCESS: Final = re.compile(
    r"\bpid[= ]'?(\d{2,8})\b|\b[Kk]illed process (\d{2,8})\b|\b\w{1,30}[\[:](\d{2,8})\]?:? (?:segfault|trap|blocked)"
)
_MENTION: Final = re.compile(
    r"(?i)(?<!sending )(?<!subprocess )\b(?:rank|worker|process|task|trainer)[ .:#=]{1,2}"
    r"(?P<rank>\d{1,3})\b(?! (?:of|steps|workers)|:\d)"
)


def ranks_seen(raw: RawCase, items: Sequence[Item]) -> int:
    """How many different ranks have a stream or a line."""
    return len(
        {stream.rank for stream in raw.streams if stream.rank is not None}
        | {item.rank for item in items if item.rank is not None}
    )


def _behind(items: Sequence[Item]) -> int | None:
    """The rank whose last enqueued collective is behind the others', None if none is."""
    for pattern in _SEQUENCES:
        last: dict[int, int] = {}
        for item in items:
            if item.rank is None or item.role not in {"cascade", "initiating"}:
                continue
            for hit in pattern.finditer(item.text, 0, 2_000):
                number = int(hit[1])
                if number < 1 << 62:
                    last[item.rank] = max(last.get(item.rank, 0), number)
        if len(last) > 1:
            low = min(last.values())
            slow = [rank for rank, number in last.items() if number == low]
            if len(slow) == 1 and low < max(last.values()):
                return slow[0]
    return None


def _late(items: Sequence[Item]) -> int | None:
    """The one rank that came when the others had given up: they waited in vain, it only found them gone."""
    waiters: set[int] = set()
    others: set[int] = set()
    for item in items:
        if item.rank is not None and item.role in {"cascade", "initiating"}:
            (waiters if _WAITED.search(item.text, 0, 600) else others).add(item.rank)
    late = others - waiters
    return late.pop() if waiters and len(late) == 1 else None


def _silent(raw: RawCase, items: Sequence[Item], speakers: Sequence[Speakers], told: Sequence[Death]) -> int | None:
    """The one rank that should speak and does not, while the others complain of a consequence.

    Of several silent ones it is the one whose end a launcher tells.
    """
    talking = {
        item.rank
        for item in items
        if item.rank is not None and item.role in {"cascade", "initiating"} and not item.death
    }
    for one in speakers:
        talking |= one.voices
    if not talking:
        return None
    there = {rank for one in speakers for rank in one.known} | {
        stream.rank for stream in raw.streams if stream.rank is not None and len(raw.streams) > 1
    }
    world = raw.job.gpus or 0
    if world > len(talking) and len(there) <= world:
        there |= set(range(world))
    elif len(raw.streams) <= 2:  # noqa: PLR2004 - a text of all, beside a launcher's
        there |= set(range(max(talking) + 1))
    quiet = there - talking
    size = len(quiet)
    whole_node = (
        size in {2, 4, 8} and 2 * size <= len(there) and min(quiet) % size == 0 and max(quiet) - min(quiet) == size - 1
    )
    few = len(talking) == 1 and len(there) > 2  # noqa: PLR2004 - one voice of many says nothing of who is missing
    if not few and (size == 1 or whole_node):
        return min(quiet)
    alone = len(raw.job.nodes) <= 1
    ended = (one.rank if one.rank is not None or not alone else one.local for one in sorted(told, key=_time))
    return next((rank for rank in ended if rank in quiet), None)


def _gpu(items: Sequence[Item], rank: int | None) -> int | None:
    for item in items:
        if item.role != "initiating" or (rank is not None and item.rank not in {None, rank}):
            continue
        if item.gpu is not None:
            return item.gpu
        hit = _GPU.search(item.text, 0, 600)
        if hit is not None:
            return int(next(one for one in hit.groups() if one is not None))
    return None


def _node_of(raw: RawCase, items: Sequence[Item], rank: int | None, told: Sequence[Death]) -> str | None:
    for item in items:
        if item.role == "initiating" and item.node and (rank is None or item.rank in {None, rank}):
            return item.node
    if rank is not None:
        for stream in raw.streams:
            if stream.rank == rank and stream.node:
                return stream.node
        for death in told:
            if death.rank == rank and death.node:
                return death.node
    return raw.job.nodes[0] if len(raw.job.nodes) == 1 else None


def _on_node(raw: RawCase, items: Sequence[Item], node: str | None) -> set[int]:
    """The ranks that ran on a node, as far as streams and lines tell."""
    if node is None:
        return set()
    name = node.split(".", 1)[0]
    found = {one.rank for one in raw.streams if one.rank is not None and one.node and one.node.split(".", 1)[0] == name}
    found |= {one.rank for one in items if one.rank is not None and one.node and one.node.split(".", 1)[0] == name}
    return found


def _time(death: Death) -> tuple[bool, float]:
    return not death.told, death.time if death.time is not None else 1e12


def _own(raw: RawCase, items: Sequence[Item]) -> list[Item]:
    """The items by which a rank tells of a beginning of its own; where a node began it those of its ranks."""
    own = [
        item
        for item in items
        if item.role == "initiating"
        and item.bucket < _SURE
        and not (item.hits and all(hit.role != "initiating" for hit in item.hits))
        and item.rank is not None
        and (not item.about or item.rank in item.about)
    ]
    first = next((item for item in items if item.role == "initiating"), None)
    if first is not None and first.rank is None and first.node is not None:
        there = _on_node(raw, items, first.node)
        near = [item for item in own if item.rank in there]
        return near or own
    return own


def _rank(  # noqa: PLR0911 - one return a way to tell
    raw: RawCase, items: Sequence[Item], told: Sequence[Death], missing: Sequence[int], speakers: Sequence[Speakers]
) -> int | None:
    own = _own(raw, items)
    violent = [death for death in told if death.violent and death.rank is not None]
    sure = [item for item in own if item.bucket < _ECHO]
    if sure:
        quiet_kill = {death.rank for death in violent} - {item.rank for item in sure}
        if len(quiet_kill) == 1 and sure[0].bucket >= 1 and len({item.rank for item in sure}) > 1:
            return quiet_kill.pop()  # all who spoke were others: the killed one said nothing
        return sure[0].rank
    if violent:
        return min(violent, key=_time).rank
    if (rank := _by_process(items, speakers)) is not None:
        return rank
    first = next((item for item in items if item.role == "initiating" and not item.scheduler), None)
    nameless = first is not None and first.rank is None and first.bucket < _ECHO and first.number is not None
    if nameless and (rank := _told(raw, told)) is not None:
        return rank  # who wrote the words is not told, but whose end the launcher saw first
    waited = any(item.role != "context" and _WAITED.search(item.text, 0, 600) for item in items)
    seen = next((one for one in told if one.sure and one.rank is not None and one.signal != SIGTERM), None)
    if seen is not None and not (waited and seen.signal in {6, None}):
        return seen.rank
    if missing:
        return Counter(missing).most_common(1)[0][0]
    lone = {item.rank for item in own}
    if len(lone) == 1 and not _only_waited(own):
        return lone.pop()  # all others only follow
    for guess in (_behind(items), _silent(raw, items, speakers, told), _late(items)):
        if guess is not None:
            return guess
    if own:
        return own[0].rank
    rank = _told(raw, told)
    return rank if rank is not None else _by_words(raw, items)


def _by_process(items: Sequence[Item], speakers: Sequence[Speakers]) -> int | None:
    """The rank of the process that a node's own line names."""
    for item in items:
        if item.role != "initiating" or item.number is not None or item.scheduler:
            continue
        hit = _PROCESS.search(item.text, 0, 600)
        if hit is None:
            continue
        pid = next(one for one in hit.groups() if one is not None)
        ranks = {rank for one in speakers if (rank := one.rank_of_pid(pid)) is not None}
        if len(ranks) == 1:
            return ranks.pop()
    return None


def _only_waited(own: Sequence[Item]) -> bool:
    """Whether all that a rank says is that others did not answer."""
    return all(item.bucket >= _ECHO for item in own)


def _told(raw: RawCase, told: Sequence[Death]) -> int | None:
    """The rank whose end launchers tell first, ends that are mostly consequences last."""
    for death in sorted(told, key=lambda one: (one.signal in {6, 15}, *_time(one))):
        if death.rank is not None and (death.signal != SIGTERM or death.told):
            return death.rank
        if death.local is not None and len(raw.job.nodes) <= 1:
            return death.local
    return None


def _by_words(raw: RawCase, items: Sequence[Item]) -> int | None:
    """The last resort: who complains first, a rank of the node in question, one that a line names, the only one."""
    for item in items:
        if item.role in {"initiating", "cascade"} and item.rank is not None:
            return item.rank
    for item in items:
        there = _on_node(raw, items, item.node) if item.role == "initiating" else set()
        if there:
            return min(there)
    for item in items:
        if item.role == "initiating" and item.likely is not None:
            return item.likely
    for item in items:
        hit = _MENTION.search(item.text, 0, 600) if item.role != "context" else None
        if hit is not None:
            return int(hit["rank"])
    alone = {stream.rank for stream in raw.streams}
    return alone.pop() if len(alone) == 1 else None


def find(
    raw: RawCase,
    items: Sequence[Item],
    told: Sequence[Death],
    missing: Sequence[int],
    speakers: Sequence[Speakers] = (),
) -> Suspect | None:
    """The suspect, None where nothing points to one.

    `items` are in the order of the evidence; `missing` the ranks that others say did not come, once a voice; `speakers`
    tell what else is known of the ranks.
    """
    rank = _rank(raw, items, told, missing, speakers)
    node = _node_of(raw, items, rank, told)
    gpu = _gpu(items, rank)
    if rank is None and node is None and gpu is None:
        return None
    return Suspect(rank=rank, node=node, gpu=gpu)
