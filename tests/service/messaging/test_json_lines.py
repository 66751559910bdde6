import gzip
import hashlib
import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.contracts.event import MAX_EVENT_BYTES
from service.errors import InvalidInput
from service.messaging.json_lines import lines


def test_numbers_lines_and_leaves_blank_ones_out(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"one\n\n  \r\ntwo\r\nthree")
    assert [(line.number, line.value) for line in lines(str(path))] == [(1, b"one"), (4, b"two"), (5, b"three")]


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert [line.value for line in lines(str(path))] == [b"one", b"two"]


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Standard:
        buffer = io.BytesIO(b"one\ntwo\n")

    monkeypatch.setattr(sys, "stdin", Standard())
    assert [line.value for line in lines("-")] == [b"one", b"two"]


@pytest.mark.parametrize("content", [b"one\ntwo\n", gzip.compress(b"one\ntwo\n")], ids=["plain", "gzip"])
def test_pipes_are_read_like_files(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def pipe() -> int:
        end, start = os.pipe()
        os.write(start, content)
        os.close(start)
        return end

    end = pipe()
    assert [line.value for line in lines(f"/dev/fd/{end}")] == [b"one", b"two"]
    os.close(end)
    with os.fdopen(pipe(), "r") as standard:
        monkeypatch.setattr(sys, "stdin", standard)
        assert [line.value for line in lines("-")] == [b"one", b"two"]


def test_what_can_not_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.jsonl: No such file"):
        list(lines(str(tmp_path / "absent.jsonl")))
    with pytest.raises(InvalidInput, match="Is a directory"):
        list(lines(str(tmp_path)))


def test_a_gzip_file_that_was_cut_gives_what_is_there_and_then_says_so(tmp_path: Path) -> None:
    path = tmp_path / "cut.gz"
    whole = gzip.compress(b"".join(b"line %d\n" % number for number in range(5_000)))
    path.write_bytes(whole[: len(whole) // 2])
    reading = lines(str(path))
    assert [next(reading).value, next(reading).value] == [b"line 0", b"line 1"]
    with pytest.raises(InvalidInput, match=r"cut\.gz: can't be read after line"):
        list(reading)


def test_a_line_longer_than_any_event_costs_no_memory_and_is_reported(tmp_path: Path) -> None:
    long = b"x" * (2 * MAX_EVENT_BYTES + 17)
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(b"before\n" + long + b"\nafter\n", compresslevel=1))
    before, huge, after = lines(str(path))
    assert (before.value, after.value, after.number) == (b"before", b"after", 3)
    assert huge.too_long
    assert (huge.size, huge.sha256) == (len(long), hashlib.sha256(long).hexdigest())
    assert len(huge.value) <= MAX_EVENT_BYTES


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=60).filter(lambda part: b"\n" not in part)), st.integers(1, 40))
def test_any_content_gives_every_line_once(tmp_path: Path, parts: list[bytes], limit: int) -> None:
    path = tmp_path / "any"
    path.write_bytes(b"\n".join(parts))
    if path.read_bytes()[:2] == b"\x1f\x8b":
        return
    found = {line.number: line for line in lines(str(path), limit)}
    for number, part in enumerate(parts, start=1):
        if len(part) > limit:
            assert found[number].value == part[:limit]
        elif part.strip():
            assert found[number].value == part.strip()
        else:
            assert number not in found
