"""What a process prints after it was asked to end, had lost the others, or ended once before, began no failure."""

from datetime import UTC, datetime

import pytest

from classifiers.contracts import Evidence, JobFacts, LogStream, NodeEvent, RawCase
from tests.classifiers.packaged_catalogue import EXTRACTOR

STEPS = "".join(f"2026-11-20 10:{n:02}:00 step {n} loss 1.5\n" for n in range(20))
ERROR = 'Traceback (most recent call last):\n  File "a.py", line 3, in save\n    write(ema)\n{error}\n'
KEY = "KeyError: 'momentum'"
TIMEOUT = (
    "[rank0]:[E1120 10:40:00.000000000 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=700, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600010 "
    "milliseconds before timing out.\n"
)


def first(*texts: str) -> Evidence:
    """The first line of evidence of ranks with these logs."""
    streams = tuple(LogStream(text, rank=rank, node=f"n{rank}") for rank, text in enumerate(texts))
    job = JobFacts(status="failed", gpus=2, nodes=("n0", "n1"), scheduler="slurm")
    return EXTRACTOR.extract(RawCase(job=job, streams=streams)).case.evidence[0]


@pytest.mark.parametrize(
    "asked",
    ["2026-11-20 10:21:00 got SIGTERM, saving the state", "2026-11-20 10:21:00 caught signal 15 (agent)"],
)
def test_an_error_of_a_process_that_was_asked_to_end_is_not_the_beginning(asked: str) -> None:
    late = first(STEPS + asked + "\n" + ERROR.format(error=KEY))
    assert late.text == asked
    assert first(STEPS + ERROR.format(error=KEY) + asked + "\n").text == KEY


def test_a_rank_that_was_asked_to_end_leaves_the_error_of_the_other_rank() -> None:
    asked = "2026-11-20 10:21:00 got SIGTERM\n" + ERROR.format(error=KEY)
    assert first(STEPS + asked, STEPS + ERROR.format(error="ValueError: odd length")).text == "ValueError: odd length"


def test_an_error_after_a_rank_waited_in_vain_is_not_the_beginning() -> None:
    assert "Watchdog" in first(STEPS + TIMEOUT + ERROR.format(error=KEY), STEPS).text
    full = "OSError: [Errno 28] No space left on device: 'emergency.pt'"
    assert "Watchdog" in first(STEPS + TIMEOUT + ERROR.format(error=full), STEPS).text


def test_a_device_that_fails_is_the_beginning_also_where_it_is_reported_late() -> None:
    fault = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
    assert first(STEPS + TIMEOUT + ERROR.format(error=fault), STEPS).text == fault


@pytest.mark.parametrize(
    ("boundary", "is_last"),
    [
        ("run.sh: attempt 2 of this job starts", True),
        ("run.sh: SLURM_RESTART_COUNT=1", True),
        ("=== requeued, attempt 2, new revision 41c0 ===", True),
        ("run.sh: attempt 2 after the requeue", True),
        ("http: attempt 2 of 5", False),  # of a request
    ],
)
def test_what_ended_an_earlier_attempt_did_not_end_the_last_one(boundary: str, *, is_last: bool) -> None:
    preempted = "slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-20T10:20:00 DUE TO PREEMPTION ***\n"
    missing = "ModuleNotFoundError: No module named 'apex'"
    found = first(STEPS + preempted + boundary + "\n" + ERROR.format(error=missing)).text
    assert (found == missing) is is_last


def test_an_attempt_that_shows_no_end_leaves_the_earlier_one() -> None:
    preempted = "slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2026-11-20T10:20:00 DUE TO PREEMPTION ***"
    assert first(f"{STEPS}{preempted}\nrun.sh: attempt 2 of this job starts\nreading the settings\n").text == preempted


def test_a_general_complaint_does_not_come_before_the_reason_that_a_service_gives() -> None:
    general = (
        "'(MaxRetryError(\"HTTPSConnectionPool(host='hub.test.org', port=443): Max retries exceeded with url: "
        "/api/sets/tree\"))' thrown while requesting GET, retrying in 2s [Retry 1/5].\n"
    )
    reason = "hub.errors.HTTPError: 429 Client Error: Too Many Requests for url: https://hub.test.org/api/sets/paths"
    assert first(general + STEPS + ERROR.format(error=reason)).text == reason


def test_what_a_scheduler_says_of_the_end_is_the_beginning_also_after_the_signal() -> None:
    limit = "slurmstepd: error: *** STEP 71.0 ON n0 CANCELLED AT 2026-11-20T10:21:00 DUE TO TIME LIMIT ***"
    assert first(STEPS + "2026-11-20 10:21:00 got SIGTERM, saving the state\n" + limit + "\n").text == limit


@pytest.mark.parametrize(("minute", "is_beginning"), [(19, False), (31, True)])
def test_a_fault_of_a_node_that_ended_an_earlier_attempt_did_not_end_the_last_one(
    minute: int, *, is_beginning: bool
) -> None:
    lost = "slurmstepd: error: *** STEP 7.0 ON n0 CANCELLED AT 2026-11-20T10:20:00 DUE TO NODE FAILURE ***\n"
    log = f"{STEPS}{lost}requeued, attempt 2\n2026-11-20 10:30:00 reading the state\n"
    fault = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    error = ERROR.format(error="RuntimeError: CUDA error: unspecified launch failure")
    event = NodeEvent(fault, datetime(2026, 11, 20, 10, minute, tzinfo=UTC), "n0", "kernel")
    job = JobFacts(status="failed", nodes=("n0",), ended_at=datetime(2026, 11, 20, 10, 32, tzinfo=UTC))
    items = EXTRACTOR.extract(RawCase(job, (LogStream(log + error, rank=0, node="n0"),), node_events=(event,))).items
    assert (fault in [item.text for item in items if item.role == "initiating"]) is is_beginning


DOWNLOAD = "2026-11-20 10:21:00 WARNING fetch of part 3 failed ({n}/3): read of header: {error}\n"
UNREADABLE = "'utf-8' codec can't decode byte 0xfc in position 11: invalid start byte"


@pytest.mark.parametrize("end", ["gave up after 3 attempts", "part 3: retries exhausted", "part 3 unavailable"])
def test_an_exception_that_says_that_attempts_are_over_follows_the_error_of_the_first_attempt(end: str) -> None:
    attempts = "".join(DOWNLOAD.format(n=n, error=UNREADABLE) for n in (1, 2, 3))
    assert "(1/3)" in first(STEPS + attempts + ERROR.format(error=f"RuntimeError: {end}")).text
    other = "RuntimeError: part 3 has another length"
    assert first(STEPS + attempts + ERROR.format(error=other)).text == other


def test_a_value_that_is_nothing_follows_the_refusal_of_the_service_that_should_have_given_it() -> None:
    refused = "2026-11-20 10:21:00 WARNING GET https://hub.example/w7 -> 401 Unauthorized: token is of 2025\n"
    nothing = "TypeError: object of type 'NoneType' has no len()"
    assert "401" in first(refused + ERROR.format(error=nothing)).text
    assert first(refused + STEPS + ERROR.format(error=nothing)).text == nothing, "the run went on"
    assert first(refused + ERROR.format(error=KEY)).text == KEY
