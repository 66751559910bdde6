"""Lines that any run prints do not count as signs of its failure."""

from pathlib import Path

import pytest

from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.data import word_lists
from classifiers.extraction import benign_lines
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.extraction.extractor import Extractor
from classifiers.model.vectorizer import features

MISSING = "2019-05-02 07:11:09.1: W dso_loader.cc:59] Could not load dynamic library 'libnvinfer.so.6'; dlerror: none"
NOT_A_FAILURE = (
    "W bfc_allocator.cc:211] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.1GiB. The caller indicates "
    "that this is not a failure, but may mean that there could be performance gains if more memory were available."
)
NAMES_ABSENT = "/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory"
OPTIONAL = "ModuleNotFoundError: No module named 'apex' (optional), using torch.optim.AdamW"
FAILURE = "ValueError: the towers got 3 and 4 samples"


def _extracted(extractor: Extractor, *lines: str) -> ExtractedCase:
    stream = LogStream(text="\n".join(lines) + "\n")
    return extractor.extract(RawCase(job=JobFacts(status="failed", gpus=2), streams=(stream,)))


@pytest.mark.parametrize("line", [MISSING, NOT_A_FAILURE, "Using TensorFlow backend.", NAMES_ABSENT, OPTIONAL])
def test_a_notice_next_to_a_failure_does_not_change_its_features(extractor: Extractor, line: str) -> None:
    without_notice, with_notice = (features(_extracted(extractor, *lines)) for lines in ((FAILURE,), (line, FAILURE)))
    words = {name for name in with_notice if name.startswith(("i:", "w:", "g:", "g1:", "g2:"))}
    assert words == {name for name in without_notice if name.startswith(("i:", "w:", "g:", "g1:", "g2:"))}


def test_a_notice_is_not_the_beginning_of_a_failure(extractor: Extractor) -> None:
    case = _extracted(extractor, NOT_A_FAILURE, FAILURE).case
    assert next(one.text for one in case.evidence if one.role == "initiating") == FAILURE
    assert all(one.role == "context" for one in case.evidence if "not a failure" in one.text)


def test_a_notice_is_read_where_nothing_else_was_printed(extractor: Extractor) -> None:
    assert "w:allocator" in features(_extracted(extractor, NOT_A_FAILURE))
    assert benign_lines.drop_routine([NOT_A_FAILURE, "  "]) == (NOT_A_FAILURE, "  ")


@pytest.mark.parametrize(
    "line",
    [
        "ImportError: libcudart.so.10.0: cannot open shared object file: No such file or directory",
        "NET/IB : No device found.",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor",
        "it stands still after the last epoch",
    ],
)
def test_a_line_that_may_be_the_failure_is_not_benign(line: str) -> None:
    assert not benign_lines.is_benign(line)


def test_a_phrase_that_is_too_short_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cues").mkdir()
    (tmp_path / "cues" / "benign_lines.toml").write_text(
        'version = 1\n[[harmless]]\nname = "one"\nwords = ["none"]\nsource = "a library"\n'
    )
    monkeypatch.setattr(word_lists, "files", lambda _: tmp_path)
    benign_lines.phrases.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"benign_lines.toml: one: expected 8 letters or more: 'none'"):
            benign_lines.phrases()
    finally:
        benign_lines.phrases.cache_clear()


@pytest.mark.parametrize(
    ("line", "is_setting"),
    [
        ("  on_error: abort", True),
        ("trainer.nan_policy = raise", True),
        ("exit_code: 1", False),
        ("error_reason=oom", False),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory", False),
    ],
)
def test_a_setting_of_a_file_says_nothing_of_a_failure(line: str, is_setting: bool) -> None:
    assert benign_lines.says_none_failed(line, ["error", "abort", "nan", "oom"]) is is_setting


@pytest.mark.parametrize(
    "line",
    [
        "=" * 40,
        "Requirement already satisfied: retry2>=1.0 in /opt/conda/lib/python3.11/site-packages (1.2.1)",
        "  Loading requirement: gcc/12.2.0 openmpi/4.1.5",
        "2026-05-24 12:00:00 nid001042:4711:4711 [0] NCCL INFO NET/IB : No device found.",
        "checkpoint: {every: 1000, fail_on_missing: false, async_timeout: 600}",
        "  nan_policy: raise",
        "Loading shards:  20%|##        | 1/5 [00:01<00:04,  2.31it/s]",
    ],
)
def test_what_runs_print_before_their_work_is_routine(line: str) -> None:
    assert benign_lines.is_routine(line)


@pytest.mark.parametrize(
    "line",
    [
        FAILURE,
        "Collecting garbage failed",
        "exit_reason: killed",
        "nid001042:4711:4711 [0] NCCL WARN Bootstrap : no socket interface found",
        "Downloading",
    ],
)
def test_other_lines_are_no_routine(line: str) -> None:
    assert not benign_lines.is_routine(line)


@pytest.mark.parametrize(
    "added", [("  nan_policy: raise", "=" * 20), ("checkpoint: {every: 9, fail_on_missing: false}",)]
)
def test_routine_lines_before_a_failure_do_not_change_its_features(
    extractor: Extractor, added: tuple[str, ...]
) -> None:
    plain, more = (features(_extracted(extractor, *lines)) for lines in ((FAILURE,), (*added, FAILURE)))
    assert {name for name in more if name.startswith(("w:", "i:", "g:"))} == {
        name for name in plain if name.startswith(("w:", "i:", "g:"))
    }


def test_what_ends_the_job_after_a_failure_adds_no_words_of_its_own(extractor: Extractor) -> None:
    first = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', FAILURE)
    end = (
        "slurmstepd: error: *** STEP 81.0 ON n1 CANCELLED AT 2026-05-24T12:00:09 ***",
        *(f"epilog: stopping part {number} of the platform" for number in range(30)),
    )
    plain, found = (features(_extracted(extractor, *lines)) for lines in (first, (*first, *end)))
    assert "w:towers" in found
    assert "w:epilog" not in found
    assert {name for name in found if name.startswith("f:")} == {name for name in plain if name.startswith("f:")}
