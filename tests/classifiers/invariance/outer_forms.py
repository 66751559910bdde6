"""Failures in another outer form: prefixes, healthy lines around them, other streams, other names.

`python -m tests.classifiers.invariance.outer_forms` prints, for each form, how many sides, causes and first lines
change and how many resubmits are added, over the written training runs and the failures in tests/data that may be read.
`log_surroundings` has the forms in which other tools store a log.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from classifiers.composition import training_cases
from classifiers.contracts import LogStream, RawCase, Verdict
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.diagnoser import Diagnoser
from service.cli.classifier.evaluate_noise import resubmitter
from service.recommend import policy
from tests.classifiers.invariance import healthy_lines
from tests.classifiers.log_surroundings import DATA, Rewrite, rewritten

Form = Callable[[RawCase], RawCase]
_SHORT_LOG: Final = 100  # lines
_COLOURS: Final = ("\x1b[31m{}\x1b[0m", "\x1b[1;32m{}\x1b[m", "\x1b[0;36m{}\x1b[0m", "{}")
_TIME: Final = re.compile(r"(20\d\d-\d\d-\d\d[T ])(\d\d)(:\d\d:\d\d)")
_HOME: Final = re.compile(r"(?<![\w/])/(?:home|workspace|work|app|mnt|data|scratch|root)/(?=\w)")
_LONG: Final = "/lustre/fs12/projects/0b7c-llm/users/a81f3c9d2e/2026-05-24_14-03-11_sweep-417/"
_WORD: Final = r"(?<![\w.-]){}(?![\w-])"
_JOB_NAME: Final = "f3b0c442-98fc-4c14-9afb-f4c8996fb924"
_INDENT: Final = re.compile(r"(?: {4}|  )(?=\S)")


def read_all() -> list[LabelledCase]:
    """All cases that may be read."""
    return [*training_cases.written_runs(), *labelled_cases.read_file(DATA / "unseen_failures" / "labels.jsonl.zst")]


def _each(template: str) -> Rewrite:
    """A prefix before each line, with times that go on."""
    return lambda lines, times: [
        template.format(line=line, at=at, epoch=f"{at.timestamp():.3f}", second=int(at.timestamp()))
        for line, at in zip(lines, times, strict=True)
    ]


def _lines(change: Callable[[str], str]) -> Rewrite:
    return lambda lines, _: [change(line) for line in lines]


def _wrapped(width: int) -> Rewrite:
    return lambda lines, _: [
        line[at : at + width] for line in lines for at in range(0, max(1, len(line)), width)
    ]  # as terminals break them


# What stands before each line, and how its characters are written.
PREFIXES: Final[Mapping[str, Rewrite]] = {
    "`INFO:` before each line": _each("INFO: {line}"),
    "`ERROR:` before each line": _each("ERROR: {line}"),
    "`[INFO]` before each line": _each("[INFO] {line}"),
    "epoch seconds": _each("{second} {line}"),
    "epoch seconds, fractions": _each("{epoch} {line}"),
    "epoch seconds in brackets": _each("[{epoch}] {line}"),
    "glog, level E": _each("E{at:%m%d %H:%M:%S}.123456 1234 relay.cc:12] {line}"),
    "klog, level I": _each("I{at:%m%d %H:%M:%S}.123456       1 runner.go:88] {line}"),
    "container runtime, stdout": _each("{at:%FT%T}.000000000Z stdout F {line}"),
    "Python logging, INFO": _each("{at:%F %T},123 - launcher - INFO - {line}"),
    "Python logging, ERROR": _each("{at:%F %T},123 - launcher - ERROR - {line}"),
    "basicConfig, ERROR": _each("ERROR:launcher:{line}"),
    "loguru": _each("{at:%F %T}.123 | INFO     | runner:pump:88 - {line}"),
    "rich": _each("[{at:%m/%d/%y %H:%M:%S}] INFO     {line}"),
    "Compose": _each("trainer-1  | {line}"),
    "time alone": _each("{at:%FT%T}Z {line}"),
    "time of the day alone": _each("[{at:%H:%M:%S}] {line}"),
    "CRLF": _lines(lambda line: f"{line}\r"),
    "colours": lambda lines, _: [_COLOURS[number % 4].format(line) for number, line in enumerate(lines)],
    "tabs for blanks": _lines(lambda line: re.sub(r" {2,8}", "\t", line)),
    "trailing blanks": _lines(lambda line: f"{line}   "),
    "wrapped at 200": _wrapped(200),
    "wrapped at 120": _wrapped(120),
}


Lines = Callable[[RawCase], Sequence[str]]


def _start(case: RawCase) -> datetime:
    return case.job.started_at or _end(case)


def _end(case: RawCase) -> datetime:
    return case.job.ended_at or datetime(2026, 11, 24, 10, 0, tzinfo=UTC)


def _shutdown(case: RawCase) -> Sequence[str]:
    node = next((one.node for one in case.streams if one.node), None) or next(iter(case.job.nodes), "nid001042")
    return healthy_lines.shutdown(_end(case), case.job.job_id or "8812734", node)


def _added(before: Lines | None = None, after: Lines | None = None) -> Form:
    """Lines before the first log if it is short, or after the last one."""

    def form(case: RawCase) -> RawCase:
        full = [number for number, stream in enumerate(case.streams) if stream.text.strip()]
        streams = list(case.streams)
        if not full:
            return case
        first, last = streams[full[0]], streams[full[-1]]
        if before is not None and first.text.count("\n") <= _SHORT_LOG:
            streams[full[0]] = _with_text(first, "\n".join([*before(case), first.text]))
        if after is not None:
            streams[full[-1]] = _with_text(last, "\n".join([last.text.removesuffix("\n"), *after(case), ""]))
        return replace(case, streams=tuple(streams))

    return form


def _with_text(stream: LogStream, text: str) -> LogStream:
    return replace(stream, text=text, windows=())


def _is_alone(case: RawCase, stream: LogStream) -> bool:
    return sum(one.rank == stream.rank and one.node == stream.node for one in case.streams) == 1


def _given_twice(case: RawCase) -> RawCase:
    streams: list[LogStream] = []
    for stream in case.streams:
        streams.append(stream)
        if _is_alone(case, stream):
            streams.append(replace(stream, stream="stdout" if stream.stream == "stderr" else "stderr"))
    return replace(case, streams=tuple(streams))


def _cut_in_two(case: RawCase) -> RawCase:
    streams: list[LogStream] = []
    for stream in case.streams:
        lines = stream.text.split("\n")
        place = next((at for at in range(len(lines) // 2, len(lines)) if _may_be_cut(lines, at)), 0)
        if not _is_alone(case, stream) or not place:
            streams.append(stream)
            continue
        first = _with_text(stream, "\n".join([*lines[:place], ""]))
        second = _with_text(stream, "\n".join(lines[place:]))
        streams += [replace(first, stream="stdout"), replace(second, stream="stderr", first_line=1)]
    return replace(case, streams=tuple(streams))


def _may_be_cut(lines: Sequence[str], at: int) -> bool:
    """Whether a line begins something new."""
    return at > 0 and lines[at][:1].isalnum() and not lines[at - 1].lstrip().startswith(("Traceback ", "File "))


def _named(stream: str) -> Form:
    return lambda case: replace(case, streams=tuple(replace(one, stream=stream) for one in case.streams))


def _in_one_log(case: RawCase) -> RawCase:
    """The logs of ranks in one, a line of each in turn, with a prefix."""
    own = [stream for stream in case.streams if stream.rank is not None and stream.text.strip()]
    if not own:
        return case
    lines = [[f"[rank{stream.rank}]: {line}" for line in stream.text.split("\n")] for stream in own]
    longest = max(map(len, lines))
    turn = [
        (one[at - longest] if (at - longest) >= -len(one) else None) for at in range(longest) for one in lines
    ]  # they end together
    text = "\n".join(line for line in turn if line is not None)
    merged = LogStream(text=text, rank=None, node=own[0].node, stream="stderr")
    return replace(case, streams=(merged, *(one for one in case.streams if one not in own)))


def _beside_healthy_rank(case: RawCase) -> RawCase:
    ranks = [stream.rank for stream in case.streams if stream.rank is not None]
    if not ranks:
        return case
    other = LogStream(text="\n".join(healthy_lines.training(60)), rank=max(ranks) + 1, node=case.streams[0].node)
    return replace(case, streams=(*case.streams, other))


def _other_zone(case: RawCase) -> RawCase:
    """The second log in a zone two hours earlier."""
    return replace(
        case,
        streams=tuple(
            replace(stream, text=_TIME.sub(_two_hours_earlier, stream.text)) if number % 2 else stream
            for number, stream in enumerate(case.streams)
        ),
    )


def _two_hours_earlier(time: re.Match[str]) -> str:
    hour = int(time[2])
    return f"{time[1]}{hour - 2:02d}{time[3]}" if hour > 1 else time[0]


def _long_paths(case: RawCase) -> RawCase:
    return _with_texts(case, lambda text: _HOME.sub(_LONG, text))


def _other_hosts(case: RawCase) -> RawCase:
    names = dict.fromkeys((*case.job.nodes, *(stream.node for stream in case.streams if stream.node)))
    other = {name: f"nid{1042 + 17 * number:06d}" for number, name in enumerate(names)}
    if not other:
        return case
    pattern = re.compile("|".join(_WORD.format(re.escape(name)) for name in sorted(other, key=len, reverse=True)))
    changed = _with_texts(case, lambda text: pattern.sub(lambda hit: other[hit[0]], text))
    return replace(
        changed,
        job=replace(changed.job, nodes=tuple(other[name] for name in case.job.nodes)),
        streams=tuple(replace(one, node=other.get(one.node or "")) for one in changed.streams),
        node_events=tuple(replace(one, node=other.get(one.node or "", one.node)) for one in changed.node_events),
    )


def _job_of_uuid(case: RawCase) -> RawCase:
    name = case.job.name
    changed = case
    if name and len(name) > 5:
        pattern = re.compile(_WORD.format(re.escape(name)))
        changed = _with_texts(case, lambda text: pattern.sub(_JOB_NAME, text))
    return replace(changed, job=replace(changed.job, name=_JOB_NAME, user="u7f3a9c", job_id=_JOB_NAME[:18]))


def _with_texts(case: RawCase, change: Callable[[str], str]) -> RawCase:
    """A case with all its texts changed."""
    job = case.job
    return replace(
        case,
        streams=tuple(_with_text(one, change(one.text)) for one in case.streams),
        node_events=tuple(replace(one, text=change(one.text)) for one in case.node_events),
        job=replace(job, message=job.message and change(job.message), reason=job.reason and change(job.reason)),
    )


def _of_lines(rewrite: Rewrite) -> Form:
    return lambda case: rewritten(case, rewrite)


FORMS: Final[Mapping[str, Form]] = {
    **{name: _of_lines(rewrite) for name, rewrite in PREFIXES.items()},
    "banner before a short log": _added(lambda case: healthy_lines.banner(_start(case))),
    "installed packages before it": _added(lambda _: healthy_lines.packages(40)),
    "loaded modules before it": _added(lambda _: healthy_lines.modules(40)),
    "start of NCCL before it": _added(lambda _: healthy_lines.nccl(200)),
    "settings before it": _added(lambda _: healthy_lines.settings()),
    "progress bars before it": _added(lambda _: healthy_lines.bars(100)),
    "400 lines of training before it": _added(lambda _: healthy_lines.training(400)),
    "all of these before it": _added(
        lambda case: [
            *healthy_lines.banner(_start(case)),
            *healthy_lines.modules(10),
            *healthy_lines.packages(60),
            *healthy_lines.settings(),
            *healthy_lines.nccl(80),
            *healthy_lines.training(150),
        ]
    ),
    "30 lines of the end after it": _added(after=_shutdown),
    "given as stdout and as stderr": _given_twice,
    "first half stdout, second half stderr": _cut_in_two,
    "all streams called stderr": _named("stderr"),
    "all streams called stdout": _named("stdout"),
    "ranks in one log with prefixes": _in_one_log,
    "a healthy rank beside it": _beside_healthy_rank,
    "second log in another zone": _other_zone,
    "job named by a uuid": _job_of_uuid,
    "long paths": _long_paths,
    "other names of hosts": _other_hosts,
}


@dataclass(frozen=True, slots=True)
class Changes:
    """How many of some verdicts change under a form; `cases` are those whose input differs from the plain one."""

    cases: int
    sides: int
    causes: int
    first_lines: int
    resubmits: int
    right_before: int
    right_after: int
    changed: tuple[str, ...] = ()


def first_line(verdict: Verdict) -> str:
    """The first line of a failure in a form without what stands before it: its last 60 letters and digits."""
    first = next((one.text for one in verdict.evidence if one.role == "initiating" and one.line is not None), "")
    return "".join(re.findall(r"[A-Za-z0-9]", first))[-60:]


def _same_line(one: Verdict, other: Verdict) -> bool:
    before, after = first_line(one), first_line(other)
    return before == after or (bool(before and after) and (before in after or after in before))


def compare(diagnoser: Diagnoser, cases: Sequence[LabelledCase], before: Sequence[Verdict], form: Form) -> Changes:
    """What a form changes in the verdicts of some cases."""
    made = [form(case.raw) for case in cases]
    kept = [number for number, case in enumerate(cases) if made[number] != case.raw]
    after = diagnoser.diagnose([made[number] for number in kept])
    would = resubmitter(policy.load(None))
    pairs = [(cases[number], before[number], verdict) for number, verdict in zip(kept, after, strict=True)]
    return Changes(
        cases=len(kept),
        sides=sum(one.side != other.side for _, one, other in pairs),
        causes=sum(one.cause != other.cause for _, one, other in pairs),
        first_lines=sum(not _same_line(one, other) for _, one, other in pairs),
        resubmits=sum(would(case.event, other) and not would(case.event, one) for case, one, other in pairs),
        right_before=sum(one.side in case.labels.allowed["side"] for case, one, _ in pairs),
        right_after=sum(other.side in case.labels.allowed["side"] for case, _, other in pairs),
        changed=tuple(case.id for case, one, other in pairs if one.side != other.side),
    )


def main(arguments: Sequence[str]) -> None:
    """Print what each form changes."""
    parser = argparse.ArgumentParser(description="what changes with the outer form of a failure")
    parser.add_argument("--model", type=Path, default=Path(sys.prefix) / "share" / "faultline" / "model")
    parser.add_argument("--step", type=int, default=1, help="measure every so many-th case")
    parser.add_argument("--form", action="append", help="forms to measure, by a part of their names")
    parser.add_argument("--ids", type=Path, help="write the ids of changed cases")
    args = parser.parse_args(arguments)
    diagnoser = Diagnoser.load(args.model)
    cases = read_all()[:: args.step]
    before = diagnoser.diagnose([case.raw for case in cases])
    print(f"{'form':40}{'cases':>6}{'sides':>7}{'causes':>7}{'lines':>7}{'resub.':>7}{'right':>12}")
    found = {}
    for name, form in FORMS.items():
        if args.form and not any(part in name for part in args.form):
            continue
        one = compare(diagnoser, cases, before, form)
        found[name] = one.changed
        right = f"{one.right_before}-{one.right_after}"
        print(
            f"{name:40}{one.cases:6}{one.sides:7}{one.causes:7}{one.first_lines:7}{one.resubmits:7}{right:>12}",
            flush=True,
        )
    if args.ids:
        args.ids.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
