"""What of a log becomes words: all of a short one, the evidence of a long one."""

import pytest

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.model.vectorizer import features, is_single, words

FAILURE = "RuntimeError: the server socket has failed to listen on any local network address"


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    return Extractor(Scanner(signatures.packaged()))


def _features(extractor: Extractor, text: str) -> dict[str, float]:
    job = JobFacts(status="failed")
    return features(extractor.extract(RawCase(job=job, streams=(LogStream(text=text),))))


def test_every_line_of_a_short_log_counts(extractor: Extractor) -> None:
    told = _features(extractor, f"waiting for the second worker at the gate\n{FAILURE}\n")
    assert told["w:gate"] == pytest.approx(told["w:socket"])
    assert "i:gate" not in told
    assert "i:socket" in told


def test_of_a_long_log_only_the_evidence_counts(extractor: Extractor) -> None:
    calm = "\n".join(f"epoch 1 batch {number} of the gate, all is well" for number in range(90))
    told = _features(extractor, f"{calm}\n{FAILURE}\n")
    assert "w:socket" in told
    assert "w:gate" not in told


def test_that_a_job_failed_is_no_word_of_a_log_that_speaks(extractor: Extractor) -> None:
    assert "w:failed" not in _features(extractor, "loss: nan\n")
    assert "w:failed" in _features(extractor, "")


def test_chinese_signs_are_words_and_so_are_pairs_of_them() -> None:
    told = words("训练卡住了 on GPU")
    assert {"卡", "住", "卡 住", "gpu"} <= set(told)


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
def test_one_device_and_words_of_a_group_are_no_single_process(
    extractor: Extractor, line: str, *, single: bool
) -> None:
    job = JobFacts(status="failed", gpus=1)
    assert is_single(extractor.extract(RawCase(job=job, streams=(LogStream(text=line),)))) is single
