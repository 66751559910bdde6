"""The text that `faultline explain` prints."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from classifiers.contracts import Evidence, Suspect, Verdict
from service.contracts.event import Status
from service.contracts.verdict import VerdictBody
from service.explain.explanation import NODE_EVENT, Explanation, LogSource, ShownLine
from service.explain.file_names import Writer
from service.explain.job_facts import JobEnd
from service.explain.read_logs import ReadLog
from service.explain.terminal import Style, text_of
from service.recommend import policy
from service.recommend.advise import advise
from tests.service.recommend.sample_facts import ALONE, FAILED, LOST_GPU, TYPO

PANIC = "Kernel panic - not syncing: Fatal exception"
PLACE = Suspect(rank=3, node="gpu018", gpu=1)


@pytest.mark.parametrize(
    ("verdict", "place"),
    [
        (LOST_GPU, "rank 3, GPU 1, node gpu018"),
        (TYPO, "rank 3"),
        (replace(LOST_GPU, abstained=True), "rank 3"),
    ],
)
def test_node_and_gpu_are_named_only_where_they_are_suspected(verdict: Verdict, place: str) -> None:
    assert f"Began at    {place}\n" in _printed(replace(verdict, suspect=PLACE))


@pytest.mark.parametrize(("node", "place"), [("gpu018", "node event of gpu018"), (None, "node event")])
def test_a_node_event_is_shown_with_its_node(node: str | None, place: str) -> None:
    assert f"initiating  {place}  {PANIC}\n" in _printed(
        LOST_GPU, ShownLine(NODE_EVENT, None, "initiating", PANIC, node=node)
    )


@pytest.mark.parametrize(
    ("end", "given", "printed"),
    [
        (JobEnd(), set(), "failed (assumed)"),
        (JobEnd(exit_code=2), set(), "failed, exit code 2 (from the log)"),
        (JobEnd(Status.OUT_OF_MEMORY, signal=9), set(), "out of memory, signal 9 (from the log)"),
        (JobEnd(exit_code=137), {"exit_code"}, "failed (assumed), exit code 137"),
        (JobEnd(Status.TIMEOUT, exit_code=1), {"exit_code"}, "timeout (from the log), exit code 1"),
        (JobEnd(Status.HUNG), {"status"}, "hung"),
        (JobEnd(Status.HUNG, exit_code=1), {"status"}, "hung, exit code 1 (from the log)"),
        (JobEnd(Status.HUNG, exit_code=1), {"status", "exit_code"}, "hung, exit code 1"),
    ],
)
def test_the_end_of_the_job_says_what_was_given_and_what_was_read(end: JobEnd, given: set[str], printed: str) -> None:
    assert f"Job end     {printed}\n" in _printed(TYPO, end=end, given=frozenset(given))


@pytest.mark.parametrize("confidence", [0.946, 0.951])
def test_the_same_percentage_has_the_same_words(confidence: float) -> None:
    printed = " ".join(_printed(replace(TYPO, confidence=confidence)).split())
    assert "95 % sure of the side (almost certain)" in printed


def test_the_rank_is_named_once_and_files_of_the_node_make_no_ranks() -> None:
    lines = (
        ShownLine("rank_1.log", 4, "initiating", "[rank1]: ValueError: bad shape", rank=1),
        ShownLine("rank_0.log", 7, "cascade", "Connection reset by peer", rank=0),
    )
    two = [_source("rank_0.log"), _source("rank_1.log")]
    printed = _printed(TYPO, *lines, sources=two)
    assert "rank_1.log:4  [rank1]: ValueError: bad shape\n" in printed
    assert "rank_0.log:7  [rank 0] Connection reset by peer\n" in printed
    assert "[rank 0]" not in _printed(TYPO, *lines, sources=[_source("train.log"), _source("dmesg.txt", "dmesg")])


def test_lines_below_a_long_name_of_a_file_use_the_width() -> None:
    name = "logs/none_4f1b2c/attempt_0/rank_0/stderr.log"
    printed = _printed(TYPO, ShownLine(name, 7, "initiating", "ValueError: " + "bad shape, " * 9))
    assert f"  initiating  {name}:7\n{' ' * 20}ValueError: bad shape, bad" in printed


@pytest.mark.parametrize("verdict", [TYPO, replace(LOST_GPU, abstained=True)])
@pytest.mark.parametrize("width", [40, 50, 60])
def test_a_narrow_terminal_has_no_longer_lines(verdict: Verdict, width: int) -> None:
    line = ShownLine(
        "train-7.log", 12, "initiating", "ValueError: " + "bad shape, " * 9, raised_at="train.py:7 in step"
    )
    printed = _printed(verdict, line, style=Style(width))
    assert max(map(len, printed.splitlines())) <= width
    assert "train-7.log:12" in printed


def test_the_place_of_an_error_of_several_lines_is_said_once() -> None:
    lines = [ShownLine("a.log", at, "initiating", f"line {at}", raised_at="train.py:7") for at in (4, 5)]
    assert _printed(TYPO, *lines).count("at train.py:7") == 1


def test_an_undecided_advice_does_not_repeat_the_line_that_is_shown() -> None:
    evidence = (Evidence("ERROR what is this", "initiating", stream="stderr", line=7),)
    undecided = replace(TYPO, abstained=True, evidence=evidence, own_frame=None)
    shown = _printed(undecided, ShownLine("a.log", 7, "initiating", "ERROR what is this"))
    assert shown.count("ERROR what is this") == 1
    assert "Look first at the initiating line. Change the code" in " ".join(shown.split())


def _source(name: str, kind: str | None = None) -> LogSource:
    return LogSource(ReadLog(name, "text\n", ((0, 1),), 5, kind=kind), Writer())


def _printed(
    verdict: Verdict,
    *lines: ShownLine,
    end: JobEnd = JobEnd(Status.TIMEOUT),  # noqa: B008 - immutable
    given: frozenset[str] = frozenset(),
    sources: Sequence[LogSource] = (),
    style: Style = Style(),  # noqa: B008 - immutable
) -> str:
    advice = advise(verdict, FAILED, ALONE, policy.built_in())
    body = VerdictBody.from_verdict(verdict, advice, event_id="e", cluster="orion", job_id="1", attempt=None)
    return text_of(Explanation(body, tuple(sources), (), lines, end, given), style)
