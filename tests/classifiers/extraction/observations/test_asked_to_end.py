"""A process that somebody ended before the others lost it, where the lines of the others have no times."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

ASKED = "2026-11-20 09:30:00 SIGTERM received, saving at the next step\n"
LOST = "{}:81:99 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer {}<5297>\n"


@pytest.mark.parametrize(
    ("asked", "peer", "is_first"),
    [
        (ASKED, "hb2", True),
        (ASKED, "hb3", False),  # another node was lost
        ("RuntimeError: CUDA error: an illegal memory access was encountered\n" + ASKED, "hb2", False),
    ],
)
def test_the_node_that_the_others_name_tells_whether_it_was_lost_after_that(
    asked: str, peer: str, *, is_first: bool
) -> None:
    logs = (LogStream(asked, rank=8, node="hb2"), LogStream(LOST.format("hb1", peer), rank=0, node="hb1"))
    raw = RawCase(JobFacts(status="failed", nodes=("hb1", "hb2", "hb3"), gpus=24), logs)
    found = {hit.id for item in EXTRACTOR.extract(raw).items if item.role == "initiating" for hit in item.hits}
    assert ("shell.asked-to-end-first" in found) is is_first
