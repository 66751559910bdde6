"""Compressed batches are read up to a size, by every codec of Kafka."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import codec
from kafka.errors import CorruptRecordError
from kafka.record import default_records, legacy_records
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from service.errors import UnreadableRecord
from service.formats import recognise
from service.messaging import batching
from service.messaging.dead_letters import dead_letter
from service.messaging.kafka import bounded_codecs
from service.messaging.record import UnreadBatch

ROOT = Path(__file__).parents[4]
CODECS = ("gzip", "zstd", "lz4", "snappy")
TEXT = b"".join(b"line %d\n" % number for number in range(40_000))
ATTRIBUTES = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def decode_of(name: str) -> Callable[[bytes | memoryview], bytes]:
    decode: Callable[[bytes | memoryview], bytes] = getattr(bounded_codecs, f"{name}_decode")
    return decode


@pytest.mark.parametrize("name", CODECS)
def test_what_kafka_s_client_packs_is_read(name: str) -> None:
    assert decode_of(name)(getattr(codec, f"{name}_encode")(TEXT)) == TEXT
    assert decode_of(name)(memoryview(getattr(codec, f"{name}_encode")(b"x"))) == b"x"


def test_snappy_without_blocks_and_several_members_of_gzip_are_read() -> None:
    assert bounded_codecs.snappy_decode(codec.snappy_encode(TEXT, xerial_compatible=False)) == TEXT
    assert bounded_codecs.gzip_decode(codec.gzip_encode(b"a") + codec.gzip_encode(b"b")) == b"ab"


@pytest.mark.parametrize("name", CODECS)
def test_more_than_the_limit_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = getattr(codec, f"{name}_encode")(TEXT)
    monkeypatch.setattr(bounded_codecs, "MOST_BYTES", len(TEXT) - 1)
    with pytest.raises(CorruptRecordError, match="more than"):
        decode_of(name)(packed)
    monkeypatch.setattr(bounded_codecs, "MOST_BYTES", len(TEXT))
    assert decode_of(name)(packed) == TEXT


@pytest.mark.parametrize("name", ["gzip", "zstd", "lz4"])
def test_damaged_data_is_an_undecodable_record(name: str) -> None:
    packed = getattr(codec, f"{name}_encode")(TEXT)
    for damaged in (b"nonsense" * 9, *([packed[: len(packed) // 2]] if name != "zstd" else ())):
        with pytest.raises(CorruptRecordError):
            decode_of(name)(damaged)


def restore_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client have its own functions again after the test."""
    for module in (default_records, legacy_records):
        for one in CODECS:
            if hasattr(module, f"{one}_decode"):
                monkeypatch.setattr(module, f"{one}_decode", getattr(module, f"{one}_decode"))
    batch_of = default_records.DefaultRecordBatch
    for name in ("_read_msg", "_maybe_uncompress"):
        monkeypatch.setattr(batch_of, name, getattr(batch_of, name))


@pytest.mark.parametrize("name", CODECS)
def test_the_client_reads_batches_with_these_functions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    restore_after(monkeypatch)
    bounded_codecs.install()
    builder = MemoryRecordsBuilder(magic=2, compression_type=ATTRIBUTES[name], batch_size=10_000_000)
    builder.append(timestamp=1, key=None, value=TEXT)
    builder.close()
    batch = MemoryRecords(bytes(builder.buffer())).next_batch()
    assert [record.value for record in batch] == [TEXT]
    monkeypatch.setattr(bounded_codecs, "MOST_BYTES", 1_000)
    [stands_for_it] = MemoryRecords(bytes(builder.buffer())).next_batch()
    assert isinstance(stands_for_it.value, UnreadBatch)


def test_a_batch_that_is_too_large_becomes_a_dead_letter_and_what_follows_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever could write to a topic stopped all workers of all clusters with one megabyte."""
    restore_after(monkeypatch)
    bounded_codecs.install()
    monkeypatch.setattr(bounded_codecs, "MOST_BYTES", 1_000)
    batches = []
    for values in ((b"a" * 600, b"b" * 600), (b'{"status": "pending"}',)):
        builder = MemoryRecordsBuilder(magic=2, compression_type=ATTRIBUTES["zstd"], batch_size=10_000_000)
        for value in values:
            builder.append(timestamp=1, key=b"k", value=value, headers=[("a", b"1")])
        builder.close()
        batches.append(bytes(builder.buffer()))
    records = MemoryRecords(b"".join(batches))
    [bomb] = records.next_batch()
    assert bomb.offset == 1, "the last of its offsets, so that none of them is read again"
    found = batching.read(recognise.parse, bomb.value, bomb.headers, source="topic/jobs")
    assert isinstance(found, UnreadableRecord)
    assert "at the offsets 0 to 1, are not read" in found.reason
    assert dead_letter(bomb.value, "jobs/0/1", found).text == ""
    [after] = records.next_batch()
    assert after.value == b'{"status": "pending"}'


class NoUtf8(str):
    """A name of a header that other clients send, and the one for Python does not."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        return b"ce_\xff\xfe"


def bounded_builder(packed: int, monkeypatch: pytest.MonkeyPatch) -> MemoryRecordsBuilder:
    """Builds a batch that is read with the bounds, until the end of the test."""
    restore_after(monkeypatch)
    bounded_codecs.install()
    return MemoryRecordsBuilder(magic=2, compression_type=packed, batch_size=10_000_000)


@pytest.mark.parametrize("packed", [0, ATTRIBUTES["lz4"]])
def test_a_header_whose_name_is_no_utf_8_takes_no_record_away(packed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = bounded_builder(packed, monkeypatch)
    for name in ("a", NoUtf8(), NoUtf8(), "b"):
        builder.append(timestamp=1, key=None, value=b"v", headers=[(name, b"1")])
    builder.close()
    records = list(MemoryRecords(bytes(builder.buffer())).next_batch())
    assert [record.value for record in records] == [b"v"] * 4
    assert [record.headers[0][0] for record in records] == ["a", "ce_\ufffd\ufffd", "ce_\ufffd\ufffd", "b"]
    assert [type(record.value) for record in records] == [bytes] * 4


@pytest.mark.parametrize("packed", [0, ATTRIBUTES["zstd"]])
def test_a_record_with_millions_of_headers_is_read_without_them(packed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = bounded_builder(packed, monkeypatch)
    counts = (0, bounded_codecs.HEADERS_MOST, bounded_codecs.HEADERS_MOST + 1, 3)
    for number, count in enumerate(counts):
        builder.append(timestamp=7 + number, key=b"k", value=b"v", headers=[("a", b"1")] * count)
    builder.append(timestamp=1, key=None, value=None, headers=[("a", b"1")] * 2_000)
    builder.close()
    records = list(MemoryRecords(bytes(builder.buffer())).next_batch())
    assert [len(record.headers) for record in records] == [0, bounded_codecs.HEADERS_MOST, 0, 3, 0]
    assert [(record.offset, record.timestamp) for record in records] == [(0, 7), (1, 8), (2, 9), (3, 10), (4, 1)]
    assert [(record.key, record.value) for record in records] == [(b"k", b"v")] * 4 + [(None, None)]


BOMB = """
import re, zlib
from pathlib import Path
from kafka.errors import CorruptRecordError
from service.messaging.kafka import bounded_codecs
packer = zlib.compressobj(9, zlib.DEFLATED, 31)
# After a full flush a piece stands on its own, and is repeated instead of packed 3,000 times.
first, piece = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
packed = first + 2_999 * piece + packer.flush()
try:
    bounded_codecs.gzip_decode(packed)
except CorruptRecordError:
    print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def test_a_bomb_takes_no_more_memory_than_a_few_times_the_limit() -> None:
    done = subprocess.run([sys.executable, "-c", BOMB], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 400 * 1024 * 1024
