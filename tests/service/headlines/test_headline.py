"""Headlines say what happened, without what stands before the message of a log line."""

import pytest

from classifiers import signatures
from service.headlines.headline import LONGEST, headline, titles, without_headers

XID = "[859133.000000] NVRM: Xid (PCI:0000:3a:00): 79, pid=1954363, name=python, GPU has fallen off the bus."
LIMIT = "2024-10-17 05:30:58,945 ERROR CANCELLED DUE TO TIME LIMIT: the job asked for 2:00:00"
BUSY = "urllib3.exceptions.ResponseError: too many 503 error responses"
STEP = "Slurm cancelled the step without a reason"
HUB = "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://hub.internal/api/tokenizer.json"
LOADING = "RuntimeError: Error(s) in loading state_dict for Transformer:"
SUDO = "train_ddp.sh: line 28: sudo: command not found"


@pytest.mark.parametrize(
    ("line", "node", "frame", "found"),
    [
        (XID, "gpu018", None, "GPU fell off the bus (Xid 79) on gpu018"),
        ("[rank0]: KeyError: 'weight_decay'", None, "train.py:88", "KeyError: 'weight_decay' in train.py:88"),
        ("KeyError: 'weight_decay'", "gpu018", None, "KeyError: 'weight_decay'"),
        (
            "IndexError: Target 9 is out of bounds.",
            None,
            "train.py:97",
            "IndexError: Target 9 is out of bounds in train.py:97",
        ),
        ("[x] *** STEP 7.0 ON gpu009 CANCELLED AT 2026-11-10T04:29:44 ***", None, None, STEP),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.",
            None,
            None,
            "Job exceeded its host memory limit",
        ),
        ("container trainer ended with exit code 137", None, None, "container trainer ended with exit code 137"),
        (HUB, None, None, f"Service unavailable: {HUB.partition('exceptions.')[2]}"),
        ("status=node_fail exit_code=0", "gpu004", None, "Node failed on gpu004"),
        ("status=preempted exit_code=143", "gpu-018", None, "Preempted on gpu-018"),  # by any scheduler
        (LIMIT, None, None, "Time limit reached"),
        (BUSY, None, None, "Service unavailable: ResponseError: too many 503 error responses"),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has a total of 79 GiB.",
            None,
            "train.py:88",
            "GPU out of memory in train.py:88",
        ),
        ("OSError: [Errno 116] Stale file handle: '/scratch/a'", None, None, "Stale file handle: '/scratch/a'"),
        ("OSError: [Errno 5] Input/output error: '/scratch/a'", "n7", None, "Input/output error on n7: '/scratch/a'"),
        ("OSError: [Errno 28] No space left on device", None, None, "No space left on device"),
        (LOADING, None, None, LOADING[:-1]),
        (LOADING, None, "train.py:88", f"{LOADING[:-1]} in train.py:88"),
        (SUDO, None, "train.py:88", f"Command not found: {SUDO}"),
        ("something nobody has seen before", "gpu018", None, "something nobody has seen before"),
        ("", "gpu018", "train.py:88", ""),
        ("status=failed exit_code=1", None, None, "Failed with exit code 1, no error line found"),
        ("status=hung exit_code=137 signal=9", None, None, "Hung with exit code 137 and signal 9, no error line found"),
        ("status=cancelled", "gpu018", None, "Cancelled, no error line found"),
        ("status=failed of the service", None, None, "status=failed of the service"),
    ],
)
def test_a_headline_says_what_happened_and_where(line: str, node: str | None, frame: str | None, found: str) -> None:
    assert headline(line, node=node, frame=frame) == found


@pytest.mark.parametrize(
    "before",
    [
        "",
        "2026-01-11T14:03:19.957Z [rank7]: ",
        "Jul 27 21:05:16 aks-gpunp-34485931-vmss000007 app[3213476]: ",
        "23:15:22 | stderr: ",
        "(4) [rank2]: ",
        "[bert-ft-node-2] ",
        "2024-12-03 17:05:48,736 - ERROR - ",
        "1121 10:44:44 [ERROR] [process=0] ",
        "(TrainController pid=26549) ",
        "\x1b[31m[rank0]: \x1b[0m",
    ],
)
def test_time_host_process_and_rank_are_left_out(before: str) -> None:
    assert (
        without_headers(f"{before}ValueError: 'step' is not a valid Schedule")
        == "ValueError: 'step' is not a valid Schedule"
    )


def test_a_line_of_nothing_but_a_header_is_kept() -> None:
    assert without_headers("[rank0]: ") == "[rank0]:"
    assert without_headers("   ") == ""


def test_a_long_line_ends_with_a_whole_word() -> None:
    found = headline("RuntimeError: " + "many words " * 100)
    assert len(found) <= LONGEST
    assert found.endswith(("many…", "words…"))


def test_every_title_belongs_to_a_signature_and_reads_as_a_headline() -> None:
    assert set(titles()) <= {entry.id for entry in signatures.packaged().entries}
    for title in titles().values():
        words, _, _ = title.partition(": {line}")
        assert 4 <= len(words) <= 60, title
        assert words[0].isupper(), title
        assert not words.endswith("."), title
        assert "{" not in words, title


def test_hostile_lines_do_not_break_a_headline() -> None:
    assert headline("{line} {0} %s \x00 " * 50)
    assert len(headline("a" * 100_000)) <= 2 * LONGEST


def test_an_operator_s_label_comes_before_all_titles() -> None:
    own = {"torch.cuda.OutOfMemoryError: CUDA out of memory.": "The demo model is too large"}.get
    line = "torch.cuda.OutOfMemoryError: CUDA out of memory."
    assert headline(line, own=own) == f"The demo model is too large: {line}"
    assert headline("KeyError: 'x'", own=own) == headline("KeyError: 'x'")
    assert headline("", own=own) == ""
