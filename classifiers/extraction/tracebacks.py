"""Python tracebacks in a log: where each ends, whatever prefix a launcher put before its lines, and which came first.

A chained traceback prints the first cause first ("During handling of the above exception ...", "The above exception was
the direct cause ..."), so the first of a chain is where it began.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from classifiers.extraction.line_headers import Head, head_of

EXCEPTION = re.compile(
    r"(?:^|[\s\]:|>])(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|SystemExit|Failure|Timeout|Killed|Fault"
    r"|Iteration|NotFound|Mismatch|OutOfMemory|Expired|Denied|Unavailable))(?:\(.{0,80}?\))?(?::|\s*$)"
)
_FINAL = re.compile(r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?:\(.{0,80}?\))?\s*(?::|$)")
_CHAIN = ("During handling of the above", "The above exception was the direct")
_LIBRARY = re.compile(r"(?:site|dist)-packages|[/\\]lib[/\\]python\d|<frozen|<string>|[/\\]bin[/\\]")
_CODE = 120
_MOST_LINES = 300
_MOST_SKIPPED = 200
_MOST_FOREIGN = 4


@dataclass(frozen=True, slots=True)
class Trace:
    """One traceback: offsets of head and final line, its text, the innermost frame, whether it is chained.

    `place`: the function and the code of the innermost frame that is no library's, "" if there is none.
    """

    head: int
    final: int
    text: str
    type: str
    frame: str | None
    frame_offset: int
    chained: bool
    place: str = ""


def exception_type(line: str) -> str | None:
    """The exception class that a line names as an exception does (`pkg.SomeError: text`), None without one."""
    hit = EXCEPTION.search(line, 0, 600)
    return None if hit is None else hit["type"].rsplit(".", 1)[-1]


def _writer(head: Head) -> tuple[int | None, str | None, str | None] | None:
    """Who a head says wrote the line, None where it says nothing."""
    if head.rank is not None:
        return head.rank, None, None
    return (None, head.host, head.pid) if head.host or head.pid else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def follow(  # noqa: C901, PLR0912 - one pass over a traceback, a kind of line a branch
    text: str, head_offset: int, head_line: str, *, head_at: Callable[[str], Head] = head_of
) -> Trace | None:
    """The traceback that begins with the line at `head_offset`, None if its final line is not in the text.

    `head_at` reads the head of a line; lines of other writers than the first one's are passed over.
    """
    head = head_at(head_line)
    word = head_line.find("Traceback")
    prefixed = bool(head_line[:word].strip()) and word > 0
    writer = _writer(head)
    base = _indent(head_line[head.body :])
    at = _end(text, head_offset) + 1
    frame: str | None = None
    frame_offset = -1
    skipped = foreign = 0
    place, ours = "", False
    first: Trace | None = None
    for _ in range(_MOST_LINES):
        if at >= len(text):
            break
        end = _end(text, at)
        line = text[at : min(end, at + 4_000)].rstrip("\r")
        begin, at = at, end + 1
        if prefixed:
            this = head_at(line)
            if writer is not None and _writer(this) != writer:
                skipped += 1
                if skipped > _MOST_SKIPPED:
                    break
                continue
            body = line[this.body :]
        else:
            body = line
        bare = body.strip()
        if not bare:
            continue
        if _indent(body) > base or bare.startswith(('File "', "^", "[Previous line")):
            if bare.startswith('File "'):
                frame, frame_offset = bare, begin
                if not _LIBRARY.search(bare):
                    place = bare.rpartition(", in ")[2]
                    ours = True
                else:
                    ours = False
            elif ours and bare[:1] not in "^~":
                place, ours = f"{place}: {bare[:_CODE]}", False
            continue
        hit = _FINAL.match(bare)
        if frame is None and not hit:
            return None
        trace = Trace(
            head=head_offset,
            final=begin,
            text=line,
            type=hit["type"].rsplit(".", 1)[-1] if hit else "",
            frame=frame,
            frame_offset=frame_offset,
            chained=False,
            place=place,
        )
        if hit is not None and (EXCEPTION.search(bare) or "." in hit["type"] or hit["type"][:1].isupper()):
            return trace
        first = first or trace  # perhaps a foreign line, written between two of the traceback's
        foreign += 1
        if foreign > _MOST_FOREIGN:
            break
    return first


def mark_chains(text: str, traces: Sequence[Trace]) -> list[Trace]:
    """The traces in order, those that a chain joins to an earlier one marked as chained."""
    out: list[Trace] = []
    for trace in traces:
        joined = False
        if out and trace.head > out[-1].final:
            between = text[out[-1].final : trace.head]
            joined = len(between) < 6_000 and any(words in between for words in _CHAIN)  # noqa: PLR2004 - a long message
        out.append(replace(trace, chained=True) if joined else trace)
    return out
