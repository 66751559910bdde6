"""What people write about a failure is told from what programs print."""

import pytest

from classifiers.data.labelled_cases import LabelledCase
from classifiers.extraction import failure_stage
from classifiers.report_detection import is_prose, is_report

REPORT = """After the second epoch the job just stays there, and I see no message at all.
  File "train.py", line 88, in <module>
    loss.backward()
Does anybody know what to look at?
"""
LOG = """2026-11-20 08:00:01,120 INFO trainer: step=10 loss=2.1
2026-11-20 08:00:09,411 WARNING the loader was slower than the last one, and it is not the first time
Traceback (most recent call last):
  File "train.py", line 88, in <module>
RuntimeError: it is not on the same device as the others
"""


@pytest.mark.parametrize(
    ("line", "prose"),
    [
        ("the second run was fine and then it never came back", True),
        ("gpu017: we see it on both of the nodes", True),
        ("Is it normal that one card is idle?", True),
        ("卡在第一个 epoch 不动", True),
        ("RuntimeError: the tensors are not all on the same device", False),
        ("[2026-11-20 08:00:01] INFO it is the first of the steps", False),
        ("    loss = net(x)", False),
        ("step 10 loss 2.1", False),
        ("short note", False),
    ],
)
def test_prose_is_known_line_by_line(line: str, prose: bool) -> None:
    assert is_prose(line) is prose


def test_a_report_may_hold_lines_of_a_log_and_a_long_text_is_a_log() -> None:
    assert is_report(REPORT)
    assert not is_report(LOG)
    assert not is_report("")
    assert not is_report(REPORT + "step 10 loss 2.1\n" * 1_000)


def test_words_of_people_count_in_reports_alone() -> None:
    text = "loss.backward()\nnever moves on, no output"
    assert "hangs" in failure_stage.find_cues(text, lambda: True).found
    assert failure_stage.find_cues(text, lambda: False).found == ("backward",)


@pytest.mark.slow
def test_few_captured_logs_are_taken_for_reports(captured_cases: list[LabelledCase]) -> None:
    taken = [one.id for one in captured_cases if any(is_report(stream.text) for stream in one.raw.streams)]
    assert len(taken) <= 0.15 * len(captured_cases)
