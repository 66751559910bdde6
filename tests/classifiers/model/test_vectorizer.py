"""Features of logs: all words of a short one, those of the evidence of a long one."""

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.model.tokenizer import words
from classifiers.model.vectorizer import features, is_single_process

FAILURE = "RuntimeError: the server socket has failed to listen on any local network address"


def _features(extractor: Extractor, text: str) -> dict[str, float]:
    job = JobFacts(status="failed")
    return features(extractor.extract(RawCase(job=job, streams=(LogStream(text=text),))))


def test_every_line_of_a_short_log_counts(extractor: Extractor) -> None:
    found = _features(extractor, f"waiting for the second worker at the gate\n{FAILURE}\n")
    assert found["w:gate"] == pytest.approx(found["w:socket"])
    assert "i:gate" not in found
    assert "i:socket" in found


def test_lines_before_the_first_failing_line_of_a_short_log_count_less(extractor: Extractor) -> None:
    found = _features(extractor, "the banner greets everybody\nKeyError: 'weight_decay'\nthe summary follows\n")
    assert 0 < found["w:greets"] < 0.5 * found["w:summary"]
    unknown = _features(extractor, "the banner greets everybody\nthe end is reached\nthe summary follows\n")
    assert unknown["w:greets"] == unknown["w:summary"]


def test_what_a_person_wrote_before_the_error_counts_as_much(extractor: Extractor) -> None:
    prose = "I train a small model on two machines and it stops when the second epoch begins, what can I do?\n"
    found = _features(
        extractor, f"{prose}{prose}ValueError: the towers differ\nThe same script works on one machine.\n"
    )
    assert found["w:machines"] == found["w:towers"]


def test_of_a_long_log_only_the_evidence_counts(extractor: Extractor) -> None:
    calm = "\n".join(f"epoch 1 batch {number} of the gate, all is well" for number in range(90))
    found = _features(extractor, f"{calm}\n{FAILURE}\n")
    assert "w:socket" in found
    assert "w:gate" not in found


def test_that_a_job_failed_is_no_word_of_its_log(extractor: Extractor) -> None:
    assert "w:failed" not in _features(extractor, "loss: nan\n")
    assert "w:failed" in _features(extractor, "")


def test_chinese_signs_are_words_and_so_are_pairs_of_them() -> None:
    found = words("训练卡住了 on GPU")
    assert {"卡", "住", "卡 住", "gpu"} <= set(found)


@pytest.mark.parametrize(
    ("one", "other"), [("initialise", "initialize"), ("colours", "colors"), ("cancelled", "canceled")]
)
def test_both_spellings_are_one_word(one: str, other: str) -> None:
    assert words(one) == words(other)


def test_joined_words_count_whole_and_in_parts() -> None:
    assert {"init_process_group", "init", "process", "group"} <= set(words("init_process_group"))


@pytest.mark.parametrize(
    ("line", "single"), [("KeyError: 'RANK' in init_process_group", False), ("KeyError: 'x'", True)]
)
def test_one_device_and_words_of_a_process_group_are_no_single_process(
    extractor: Extractor, line: str, *, single: bool
) -> None:
    job = JobFacts(status="failed", gpus=1)
    assert is_single_process(extractor.extract(RawCase(job=job, streams=(LogStream(text=line),)))) is single
