"""What of a log stands on a failure's page."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from classifiers.contracts import LogStream
from service.web.pages.failure.log_excerpt import Gap, Line, code_of_frame, excerpt, excerpts, numbered, places_of


def evidence_line(
    line: int | None, text: str = "boom", role: str = "initiating", rank: int | None = 0
) -> dict[str, Any]:
    return {"rank": rank, "node": None, "stream": "stderr", "line": line, "text": text, "role": role}


def test_lines_around_evidence_and_the_end_are_shown_and_the_rest_is_counted() -> None:
    stream = LogStream("\n".join(f"line {n}" for n in range(1, 101)), 0)
    found = excerpt(stream, [evidence_line(50)])
    assert [row.number if isinstance(row, Line) else row.lines for row in found.rows] == [
        *(46, 47, 48, 49, 50, 51, 52, 53),
        *(41, 95, 96, 97, 98, 99, 100),
    ]
    assert [row.number for row in found.rows if isinstance(row, Line) and row.role == "initiating"] == [50]
    assert found.begins


def test_numbers_are_those_of_the_file() -> None:
    tail = LogStream("a\nb", 0, first_line=900)
    assert numbered(tail) == [(900, "a"), (901, "b")]
    windows = LogStream("a\nb\nc\nd", 0, windows=((0, 10), (4, None)))
    assert numbered(windows) == [(10, "a"), (11, "b"), (None, "c"), (None, "d")]


def test_a_line_of_unknown_number_is_found_by_its_text() -> None:
    found = excerpt(LogStream("x\n  boom\ny", 0, first_line=None), [evidence_line(None)])
    assert [row.role for row in found.rows if isinstance(row, Line)] == [None, "initiating", None]


def test_evidence_of_another_rank_marks_nothing_here() -> None:
    assert not excerpt(LogStream("boom", 1), [evidence_line(1)]).has_evidence


def test_evidence_without_a_rank_opens_the_line_of_the_stream_that_has_it() -> None:
    lines = [evidence_line(2, rank=None), evidence_line(1, "step 7", "context", rank=5)]
    shown, _ = excerpts([(3, [LogStream("quiet\nother", 4), LogStream("step 7\nboom", 5)])], lines)
    place_of = places_of(9, shown)
    found = place_of(lines[0])
    assert found is not None
    assert (found.address, found.rank) == ("/failures/9/logs/3/1/lines?line=2#L2", 5)
    assert place_of(evidence_line(2, "elsewhere", rank=None)) is None


def test_the_stream_where_it_began_comes_first_and_the_others_are_counted() -> None:
    streams = [LogStream("quiet", rank) for rank in range(1, 50)] + [LogStream("boom", 0)]
    shown, left_out = excerpts([(7, streams)], [evidence_line(1)])
    assert (shown[0].stream.rank, shown[0].index, shown[0].attempt_id) == (0, 49, 7)
    assert left_out == 50 - len(shown)


@given(st.text(alphabet="ab\n", max_size=80), st.lists(st.integers(1, 90), max_size=5))
def test_shown_and_left_out_make_up_the_stream(text: str, at: list[int]) -> None:
    found = excerpt(LogStream(text, 0), [evidence_line(line, "zzz") for line in at])
    assert sum(row.lines if isinstance(row, Gap) else 1 for row in found.rows) <= found.lines
    shown = [row.number for row in found.rows if isinstance(row, Line) and row.number is not None]
    assert shown == sorted(set(shown))


def test_the_line_of_code_below_the_frame_of_the_job_is_found() -> None:
    frames = 'File "/home/ana/retrain.py", line 97, in a\n    not_this()\n  File "/home/ana/train.py", line 97, in step'
    text = f"Traceback (most recent call last):\n  {frames}\n    loss = f(x)\nIndexError: boom"
    shown = [excerpt(LogStream(text, 0), [evidence_line(6, "IndexError: boom")])]
    assert code_of_frame("train.py:97", shown) == "loss = f(x)"
    assert code_of_frame("retrain.py:97", shown) == "not_this()"
    for other in ("train.py:9", "train.py:970", "rain.py:97", "", None):
        assert code_of_frame(other, shown) is None
    bare = [excerpt(LogStream(text.replace("    loss = f(x)\n", ""), 0), [evidence_line(5, "IndexError: boom")])]
    assert code_of_frame("train.py:97", bare) is None
