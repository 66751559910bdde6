"""Envelopes of log lines: what runners and collectors put around the output of a program is taken off."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from classifiers.case_builder import build_case
from classifiers.contracts import LogStream, RawCase
from classifiers.extraction.envelopes.unwrapping import own_text, unwrapped
from tests.classifiers.packaged_catalogue import EXTRACTOR

PROGRAM = (
    "starting 8 workers",
    "epoch 1 step 10 loss 2.31",
    "epoch 1 step 20 loss 2.28",
    "",
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line 41, in <module>',
    "    rate = settings['rate']",
    "KeyError: 'rate'",
)
Envelope = Callable[[str, datetime], str]
ENVELOPES: dict[str, Envelope] = {
    "Docker's json-file": lambda line, at: json.dumps(
        {"log": f"{line}\n", "stream": "stderr", "time": f"{at:%FT%T.%fZ}"}
    ),
    "JSON with level": lambda line, at: json.dumps({"ts": at.timestamp(), "level": "info", "msg": line}),
    "nested JSON": lambda line, at: json.dumps({"timestamp": f"{at:%FT%T.%fZ}", "jsonPayload": {"message": line}}),
    "logfmt": lambda line, at: f'time="{at:%FT%TZ}" level=info msg={json.dumps(line)}',
    "container runtime": lambda line, at: f"{at:%FT%T.%f}123Z stderr F {line}",
    "workflow engine": lambda line, at: f"[{at:%FT%T}.000+0000] {{pod_manager.py:472}} INFO - [base] {line}",
    "logger of a runner": lambda line, at: f"{at:%F %T}.123 | INFO     | runner.process:pump:88 - {line}",
    "standard logger of a runner": lambda line, at: f"{at:%F %T},123 - runner - INFO - {line}",
    "glog of a runner": lambda line, at: f"I{at:%m%d %T}.000000 41 stream.py:12] {line}",
    "CI": lambda line, at: f"train\tRun training\t{at:%FT%T}.0000000Z {line}",
    "syslog": lambda line, at: f"<14>1 {at:%FT%T}Z gpu017 train 4711 - - {line}",
    "log group": lambda line, at: f"{at:%FT%T}Z train/x7/algo-1 {line}",
}


def in_envelope(envelope: Envelope, lines: tuple[str, ...] = PROGRAM) -> str:
    start = datetime(2026, 11, 24, 10, 0, tzinfo=UTC)
    return "\n".join(envelope(line, start + timedelta(seconds=number)) for number, line in enumerate(lines))


def case(text: str) -> RawCase:
    return build_case({"status": "failed", "exit_code": 1, "logs": [{"stream": "stderr", "tail": text}]})


@pytest.mark.parametrize("name", ENVELOPES)
def test_the_program_is_read_without_the_envelope(name: str) -> None:
    stream = unwrapped(LogStream(in_envelope(ENVELOPES[name])))
    assert stream.is_unwrapped
    assert [own_text(line) for line in stream.text.split("\n")][4:] == list(PROGRAM[4:])


@pytest.mark.parametrize("name", ENVELOPES)
def test_lines_keep_the_time_of_the_envelope_where_the_program_writes_none(name: str) -> None:
    lines = unwrapped(LogStream(in_envelope(ENVELOPES[name]))).text.split("\n")
    assert lines[-1].startswith(("2026-11-24T10:00:07", "2026-11-24 10:00:07", "Nov 24 10:00:07"))


def test_a_program_that_writes_times_keeps_its_own() -> None:
    own = tuple(f"2026-11-23 09:00:0{number} step {number}" for number in range(6))
    stream = unwrapped(LogStream(in_envelope(ENVELOPES["container runtime"], own)))
    assert stream.text.split("\n") == list(own)


def test_a_logger_of_the_program_itself_is_no_envelope() -> None:
    text = "\n".join(
        [f"2026-11-24 10:00:0{number} - train - INFO - step {number} loss 2.3" for number in range(8)]
        + ["2026-11-24 10:00:09 - train - ERROR - cannot write the checkpoint", "Traceback (most recent call last):"]
    )
    stream = LogStream(text)
    assert unwrapped(stream) is stream


def test_a_prefix_that_says_something_of_the_failure_stays() -> None:
    stream = LogStream("\n".join(f"slurmstepd: error: {line}" for line in PROGRAM))
    assert unwrapped(stream) is stream


def test_the_prefix_of_a_rank_stays_for_those_who_attribute_lines() -> None:
    stream = LogStream("\n".join(f"[1,{number % 2}]<stderr>:{line}" for number, line in enumerate(PROGRAM)))
    assert unwrapped(stream) is stream


def test_records_of_several_levels_keep_them_and_the_rank() -> None:
    records = [{"level": "info", "rank": 3, "msg": f"step {number}"} for number in range(5)]
    records.append({"level": "error", "rank": 3, "msg": "unhandled", "exc_info": "Traceback ...\nValueError: bad"})
    lines = unwrapped(LogStream("\n".join(map(json.dumps, records)))).text.split("\n")
    assert lines[0] == "INFO: [rank3]: step 0"
    assert lines[-3:] == ["ERROR: [rank3]: unhandled", "Traceback ...", "ValueError: bad"]


@pytest.mark.parametrize("rank", ["²", "--9", "9" * 30])
def test_a_record_with_a_rank_that_is_none_has_no_rank(rank: str) -> None:
    lines = [f"level=info rank={rank} msg=step-{number}" for number in range(6)]
    assert unwrapped(LogStream("\n".join(lines))).text.split("\n")[0] == "step-0"
    lines = [f'{{"rank": {2**63}, "msg": "step {number}"}}' for number in range(6)]
    assert unwrapped(LogStream("\n".join(lines))).text.split("\n")[0] == "step 0"


def test_lines_keep_their_numbers_in_the_file_across_records_of_several_lines() -> None:
    records = ["a", "b\nb2\nb3", "c", "d", "e"]
    stream = unwrapped(LogStream("\n".join(json.dumps({"msg": one}) for one in records), first_line=11))
    assert stream.text == "a\nb\nb2\nb3\nc\nd\ne"
    places = {stream.text[at:].split("\n")[0]: number for at, number in stream.windows}
    assert places == {"a": 11, "b2": 12, "b3": 12, "c": 13}


def test_windows_of_a_file_keep_their_first_lines() -> None:
    text = in_envelope(ENVELOPES["container runtime"])
    second = text.index("\n", text.index("\n") + 1) + 1
    stream = unwrapped(LogStream(text, first_line=1, windows=((0, 1), (second, 901))))
    assert [number for _, number in stream.windows] == [1, 901]
    assert stream.text[stream.windows[1][0] :].split("\n")[0].endswith(PROGRAM[2])


def test_the_evidence_is_the_line_of_the_program_with_its_number() -> None:
    first = EXTRACTOR.extract(case(in_envelope(ENVELOPES["workflow engine"]))).case.evidence[0]
    assert (first.text, first.line, first.role) == ("KeyError: 'rate'", 8, "initiating")


@pytest.mark.parametrize("text", ["", "\n\n", "{", '{"msg": 1}\n' * 6, "a\nb\nc\nd\ne", "x" * 9_000, "\0 x\n" * 9])
def test_other_texts_stay_as_they_are(text: str) -> None:
    stream = LogStream(text)
    assert unwrapped(stream) is stream


def test_text_that_follows_a_progress_bar_at_once_is_a_line_of_its_own() -> None:
    bar = "Epoch 3:  45%|####5     | 450/1000 [05:10<06:12,  1.47it/s, loss=2.31]"
    text = "\n".join([f"{bar}\r{bar}", f"\r{bar}{PROGRAM[4]}", *PROGRAM[5:]])
    assert unwrapped(LogStream(text)).text == "\n".join([f"{bar}\r{bar}", bar, *PROGRAM[4:]])


@pytest.mark.parametrize("prefix", ["", "[rank3]: ", "2026-11-24 10:00:00 "])
@pytest.mark.parametrize(
    "heading", ["Exception ignored in: <function Pool.__del__ at 0x7f>", "Error in atexit._run_exitfuncs:"]
)
def test_an_exception_that_python_ignores_is_no_evidence(heading: str, prefix: str) -> None:
    ignored = [
        heading,
        PROGRAM[4],
        '  File "/usr/lib/python3.11/pool.py", line 2, in __del__',
        "OSError: [Errno 9] Bad",
    ]
    chained = ["", "During handling of the above exception, another exception occurred:", "", *ignored[1:]]
    lines = [*PROGRAM, *ignored, *chained, "bye"]
    read = unwrapped(LogStream("\n".join(prefix + line for line in lines))).text.split("\n")
    assert [line for line in read[len(PROGRAM) :] if line] == [f"{prefix}bye"]
    assert read[: len(PROGRAM)] == [prefix + line for line in PROGRAM]
    assert len(read) == len(lines)


def test_an_exception_after_an_ignored_one_is_evidence() -> None:
    lines = ["Exception ignored in: <x>", PROGRAM[4], "  File 'a'", "OSError: [Errno 9] Bad", *PROGRAM[4:]]
    assert unwrapped(LogStream("\n".join(lines))).text.split("\n")[4:] == list(PROGRAM[4:])


def test_a_record_in_a_record_and_behind_the_name_of_its_writer_is_read() -> None:
    own = [json.dumps({"levelname": level, "message": f"step {level}"}) for level in ("INFO", "INFO", "INFO", "ERROR")]
    nested = "\n".join(json.dumps({"@timestamp": f"2026-11-24T10:00:0{at}Z", "log": one}) for at, one in enumerate(own))
    assert unwrapped(LogStream(nested)).text.split("\n")[-1] == "2026-11-24T10:00:03Z ERROR: step ERROR"
    prefixed = unwrapped(LogStream("\n".join(f"[pod/bert-{at}/train] {one}" for at, one in enumerate(own))))
    assert prefixed.text.split("\n")[-1] == "[pod/bert-3/train] ERROR: step ERROR"
    assert own_text(prefixed.text.split("\n")[-1]) == "step ERROR"


def test_records_of_figures_among_records_of_lines_stay_as_they_are() -> None:
    figures = [json.dumps({"ts": f"2026-11-24T10:00:{at:02d}Z", "step": at, "loss": 2.5}) for at in range(20)]
    lines = [
        json.dumps({"ts": "2026-11-24T10:00:30Z", "level": level, "message": level}) for level in ("INFO", "ERROR")
    ]
    read = unwrapped(LogStream("\n".join([*figures, *lines]))).text.split("\n")
    assert read[:20] == figures
    assert read[-1] == "2026-11-24T10:00:30Z ERROR: ERROR"


@pytest.mark.parametrize("head", ["{pod_manager.py:472} INFO - [base] ", "{subprocess.py:93} INFO - "])
def test_the_few_lines_that_an_engine_relays_among_its_own_are_read_as_the_programs(head: str) -> None:
    own = [
        f"[2026-03-01T10:00:{second:02d}.000+0000] {{pod.py:99}} INFO - state of pod: Running" for second in range(20)
    ]
    relayed = [f"[2026-03-01T10:00:21.500+0000] {head}{line}" for line in PROGRAM[-4:]]
    lines = unwrapped(LogStream("\n".join([*own, *relayed]))).text.split("\n")
    assert lines[:20] == own
    assert lines[20:] == [f"2026-03-01T10:00:21.500+0000 {line}" for line in PROGRAM[-4:]]


def test_the_prefix_of_a_pod_is_taken_off_in_the_log_of_one_rank() -> None:
    text = "\n".join(f"clip-worker-3 main {line}" for line in PROGRAM)
    assert unwrapped(LogStream(text, rank=3)).text.split("\n") == [*PROGRAM]
    assert unwrapped(LogStream(text)).text == text  # it tells which rank printed a line
