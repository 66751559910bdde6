"""A job that printed nothing for long before its limit hung, however its scheduler says that the limit was reached."""

from typing import Any

import pytest

from classifiers import signatures
from classifiers.case_builder import build_case
from classifiers.contracts import Case
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner

EXTRACTOR = Extractor(Scanner(signatures.packaged()))
SERVER_LOST = "nfs: server fs1 not responding, still trying"


def case_of(minutes: int, **facts: Any) -> Case:
    """A job of one hour that printed its steps for some minutes."""
    event = {
        "status": "timeout",
        "time_limit_s": 3_600,
        "started_at": "2026-11-20T09:00:00Z",
        "ended_at": "2026-11-20T10:00:00Z",
        "nodes": ["gpu-01", "gpu-02"],
        "gpus": 16,
        "logs": [{"tail": "".join(f"2026-11-20 09:{at:02d}:00 step {at} loss 2.{at}\n" for at in range(minutes))}],
        "node_events": [
            {"text": SERVER_LOST, "node": "gpu-01", "source": "kernel", "at": f"2026-11-20T09:{minutes - 1:02d}:30Z"}
        ],
        **facts,
    }
    return EXTRACTOR.extract(build_case(event)).case


@pytest.mark.parametrize("reason", ["TIMEOUT", "TimeLimit", "DeadlineExceeded"])
def test_what_happened_when_a_job_fell_silent_is_evidence(reason: str) -> None:
    first = case_of(20, reason=reason).evidence[0]
    assert (first.text, first.role) == (SERVER_LOST, "initiating")


def test_a_job_that_printed_until_its_limit_ran_out_of_time() -> None:
    first = case_of(60, reason="TIMEOUT", node_events=[]).evidence[0]
    assert (first.text, first.signature) == ("reason=TIMEOUT", "slurm.time-limit")
