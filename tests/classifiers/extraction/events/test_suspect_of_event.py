"""The suspect rank where an event of the platform began the failure."""

from datetime import UTC, datetime

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, NodeEvent, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner

AT = datetime(2026, 9, 1, 7, tzinfo=UTC)
EXTRACTOR = Extractor(Scanner(signatures.packaged()))
LOST = "2026-09-01 08:04:05 [rank{0}]: NCCL error: remote process exited or there was a network error\nncclRemoteError: A call failed\n"


def test_the_rank_whose_error_a_change_led_to_is_the_suspect() -> None:
    change = NodeEvent("pod defaults: dshm sizeLimit now 64Mi (was none)", AT, "n1", "change")
    error = "2026-09-01 08:04:09 RuntimeError: unable to write to file </torch_7_1_0>: No space left on device (28)\n"
    texts = {0: LOST.format(0), 2: error, 9: LOST.format(9)}
    streams = tuple(
        LogStream(text, rank=rank, node=f"n{1 + rank // 8}", stream="stderr") for rank, text in texts.items()
    )
    job = JobFacts(
        status="failed",
        scheduler="kubernetes",
        nodes=("n1", "n2"),
        started_at=datetime(2026, 9, 1, 8, tzinfo=UTC),
        ended_at=datetime(2026, 9, 1, 8, 5, tzinfo=UTC),
    )
    found = EXTRACTOR.extract(RawCase(job=job, streams=streams, node_events=(change,)))
    assert next(item for item in found.items if item.role == "initiating").text == change.text
    assert found.case.suspect is not None
    assert found.case.suspect.rank == 2
