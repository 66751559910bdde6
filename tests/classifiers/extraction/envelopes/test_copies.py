"""A log that is given twice is read once."""

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.envelopes.copies import without_copies

LOG = "starting\nKeyError: 'rate'\n"


def names(*streams: LogStream) -> list[str]:
    case = without_copies(RawCase(job=JobFacts(status="failed"), streams=streams))
    return [f"{one.rank} {one.stream}" for one in case.streams]


def test_output_and_errors_may_be_one_file() -> None:
    assert names(LogStream(LOG, 0, stream="stdout"), LogStream(LOG, 0, stream="stderr")) == ["0 stdout"]


def test_errors_may_be_written_into_the_output_as_well() -> None:
    whole = LogStream(LOG, 0, stream="stdout")
    assert names(LogStream("KeyError: 'rate'\n", 0, stream="stderr"), whole) == ["0 stdout"]


def test_logs_of_their_own_stay() -> None:
    other = LogStream(LOG, 1, stream="stdout")
    more = LogStream(LOG + "Killed\n", 0, stream="stderr")
    empty = LogStream("", 0, stream="stderr")
    assert names(LogStream(LOG, 0, stream="stderr"), other) == ["0 stderr", "1 stdout"]
    assert names(LogStream("a\nb", 0, stream="stdout"), LogStream("b\nc", 0)) == ["0 stdout", "0 stderr"]
    assert names(LogStream(LOG, 0, stream="stdout"), empty) == ["0 stdout", "0 stderr"]
    assert names(LogStream(LOG, 0, stream="stdout"), more) == ["0 stderr"]


def test_copies_are_found_among_many_logs_of_one_process() -> None:
    own = [LogStream(f"starting\nstep {n}\n", stream="stdout") for n in range(5)]
    copies = [LogStream("starting\nstep 3\n", stream="stderr"), LogStream("step 4\n", stream="stderr")]
    other = LogStream("starting\nstep 9\n", stream="stderr")
    assert names(*own, *copies, other) == ["None stdout"] * 5 + ["None stderr"]
