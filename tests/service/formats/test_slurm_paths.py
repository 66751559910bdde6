from typing import Any

import pytest

from service.formats.slurm.paths import expand
from tests.service.formats.examples import event, load

KNOWN = {"j": "123", "A": "120", "a": "4", "x": "my job", "u": "ana", "N": "gpu1", "t": "0", "n": "0", "s": "batch"}


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("/l/%j.out", "/l/123.out"),
        ("/l/%x_%u@%N", "/l/my job_ana@gpu1"),
        ("/l/%A_%a", "/l/120_4"),
        ("/l/%6j", "/l/000123"),
        ("/l/%99j", "/l/0000000123"),
        ("/l/%5x", "/l/my job"),
        ("/l/100%%", "/l/100%"),
        ("/l/%%j", "/l/%j"),
        ("/l/%", "/l/%"),
        ("/l/\\%j", "/l/%j"),
        ("/l/%z%4q", "/l/%z%4q"),
    ],
)
def test_patterns(template: str, path: str) -> None:
    assert expand(template, KNOWN) == (path, None)


@pytest.mark.parametrize(("template", "unknown"), [("/l/%r", "%r"), ("/l/%j-%S", "%S")])
def test_facts_missing_in_the_record_are_reported(template: str, unknown: str) -> None:
    assert expand(template, KNOWN)[1] == unknown


def refs(**change: Any) -> list[tuple[str | None, str | None, str | None]]:
    return [(ref.stream, ref.uri, ref.missing) for ref in event({**load("slurm"), **change}).logs]


def test_stderr_not_set_is_in_the_same_file() -> None:
    for err in (None, "", "/l/%j"):
        assert refs(std_out="/l/%j", std_err=err) == [("stdout", "file:///l/31877", None)]


def test_no_output_no_log() -> None:
    assert refs(std_out="/dev/null", std_err=None) == []
    assert refs(std_out=None, std_err=None) == []


def test_a_path_that_cant_be_known_is_missing_with_the_reason() -> None:
    [(_, uri, missing)] = refs(std_out="/l/%r", std_err=None)
    assert uri is None
    assert missing is not None
    assert "%r" in missing
    [(_, uri, missing)] = refs(std_out="out", std_err=None, work_dir=None)
    assert uri is None
    assert missing is not None
    assert "relative" in missing


def test_what_a_batch_scripts_file_is_called() -> None:
    template = "/l/%j-%J-%s-%t-%n-%u-%x-%A-%a-%b-%5j"
    assert refs(std_out=template, std_err=None)[0][1] == (
        "file:///l/31877-31877-batch-0-0-mira-bert-ft-31877-4294967294-4-31877"
    )


def test_odd_characters_survive_in_the_uri() -> None:
    assert refs(std_out="/l/%x #?%%.log", std_err=None, job_name="é")[0][1] == "file:///l/%C3%A9%20%23%3F%25.log"
