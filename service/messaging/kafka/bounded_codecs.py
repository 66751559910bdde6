"""Record batches that a broker accepts and Kafka's client cannot read: too large ones, and headers of any kind.

A broker does not limit what compressed batches unpack to. Without a limit, one of a megabyte could take gigabytes, and
would end every worker that reads it; so could one record with millions of headers. A header whose name is no UTF-8
would stop every worker at its place. One record stands for a batch that is too large, and becomes a dead letter.
"""

import zlib
from collections.abc import Callable
from typing import Any

import zstandard
from kafka import codec
from kafka.errors import CorruptRecordError
from kafka.record import default_records, legacy_records
from kafka.record.util import decode_varint

from service.messaging.record import UnreadBatch

MOST_BYTES = 64 * 1024 * 1024  # four events of the largest size; producers limit a batch before it is packed
HEADERS_MOST = 1_000  # of a record; each takes about 200 bytes of memory
_PIECE = 1024 * 1024
_XERIAL_MAGIC, _XERIAL_HEADER = (
    b"\x82SNAPPY\0",
    16,
)  # begin and length of what precedes the blocks of snappy's Java library
_read_record = default_records.DefaultRecordBatch._read_msg  # noqa: SLF001 - what `install` replaces
_uncompress = default_records.DefaultRecordBatch._maybe_uncompress  # noqa: SLF001 - as above
_VARINT_MOST = 5  # bytes of the length that begins a text in snappy


def install() -> None:
    """Make Kafka's client use the functions of this module."""
    if default_records.DefaultRecordBatch._read_msg is _read_record:  # noqa: SLF001 - there is no public way
        default_records.DefaultRecordBatch._read_msg = read_record  # noqa: SLF001 - as above
    if default_records.DefaultRecordBatch._maybe_uncompress is _uncompress:  # noqa: SLF001 - as above
        default_records.DefaultRecordBatch._maybe_uncompress = uncompress  # noqa: SLF001 - as above
    for module in (default_records, legacy_records):
        for name, decode in _DECODERS.items():
            if hasattr(module, name):
                setattr(module, name, decode)


class TooLargeBatch(CorruptRecordError):  # type: ignore[misc]  # kafka-python has no types
    """A compressed batch that unpacks to more than `MOST_BYTES`."""


class _NotUnpacked(bytearray):
    """The content of a batch that is too large: none."""


def uncompress(batch: Any) -> None:
    """Unpack a batch; one that is too large has a single record then, which says so and has the last of its offsets.

    Raises:
        CorruptRecordError: it is not packed as it says.
    """
    try:
        _uncompress(batch)
    except TooLargeBatch:
        batch._buffer, batch._pos, batch._num_records = _NotUnpacked(), 0, 1  # noqa: SLF001 - there is no public way
        batch._decompressed = True  # noqa: SLF001 - as above


def _record_of_batch(batch: Any) -> Any:
    """The record that stands for a batch that is too large."""
    reason = (
        f"a compressed batch of more than {MOST_BYTES // 1024 // 1024} MiB: its records, at the offsets "
        f"{batch.base_offset} to {batch.last_offset}, are not read and stay on the topic"
    )
    place = (batch.last_offset, batch.max_timestamp, batch.timestamp_type)
    return default_records.DefaultRecord(0, *place, None, UnreadBatch(reason), [])


class _AnyText(bytearray):
    """Bytes of which every part can be decoded; what is no UTF-8 becomes U+FFFD."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _AnyText(found) if isinstance(place, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "replace") -> str:
        """The text."""
        return super().decode(encoding, errors)


def read_record(batch: Any) -> Any:
    """The next record of a batch, whatever bytes the names of its headers have; without its headers if it has many.

    Raises:
        CorruptRecordError, IndexError: it is no record.
    """
    if isinstance(batch._buffer, _NotUnpacked):  # noqa: SLF001 - as above
        return _record_of_batch(batch)
    try:
        found = None if batch.is_control_batch else _without_headers(batch)
        return _read_record(batch) if found is None else found
    except UnicodeDecodeError:
        batch._buffer = _AnyText(batch._buffer)  # noqa: SLF001 - once a batch, as reading it is slower
        return _read_record(batch)


def _without_headers(batch: Any) -> Any:
    """The next record of a batch without its headers; None if it has few of them. They describe the value only."""
    buffer = batch._buffer  # noqa: SLF001 - as above
    length, begin = decode_varint(buffer, batch._pos)  # noqa: SLF001 - as above
    _, at = decode_varint(buffer, begin)  # attributes
    later, at = decode_varint(buffer, at)
    offset, at = decode_varint(buffer, at)
    parts: list[bytes | None] = []
    for _ in ("key", "value"):
        size, at = decode_varint(buffer, at)
        parts.append(bytes(buffer[at : at + size]) if size >= 0 else None)
        at += max(size, 0)
    count, at = decode_varint(buffer, at)
    if count <= HEADERS_MOST or begin + length > len(buffer) or at > begin + length:
        return None
    batch._pos = begin + length  # noqa: SLF001 - as above
    appended = batch.timestamp_type == batch.LOG_APPEND_TIME
    stamp = batch.max_timestamp if appended else batch.first_timestamp + later
    place = (batch.base_offset + offset, stamp, batch.timestamp_type)
    return default_records.DefaultRecord(length, *place, *parts, [])


def gzip_decode(payload: Any) -> bytes:
    """The text of one or more members of gzip.

    Raises:
        CorruptRecordError: it is larger than `MOST_BYTES`, or not gzip.
    """
    out, rest = bytearray(), bytes(payload)
    while rest:
        member = zlib.decompressobj(wbits=31)
        try:
            out += member.decompress(rest, _room(out))
        except zlib.error as error:
            raise CorruptRecordError(f"not gzip: {error}") from None
        if not member.eof:
            _check(out)
            raise CorruptRecordError("the gzip data is truncated")
        rest = member.unused_data
    return bytes(_check(out))


def zstd_decode(payload: Any) -> bytes:
    """The text of one or more frames of zstd.

    Raises:
        CorruptRecordError: it is larger than `MOST_BYTES`, or not zstd.
    """
    out = bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(bytes(payload), read_across_frames=True) as reader:
            while piece := reader.read(_PIECE):
                out += piece
                _check(out)
    except zstandard.ZstdError as error:
        raise CorruptRecordError(f"not zstd: {error}") from None
    return bytes(out)


def lz4_decode(payload: Any) -> bytes:
    """The text of a frame of LZ4.

    Raises:
        CorruptRecordError: it is larger than `MOST_BYTES`, or not LZ4.
    """
    out = bytearray()
    reader = codec.lz4.LZ4FrameDecompressor()
    try:
        out += reader.decompress(bytes(payload), max_length=_room(out))
    except RuntimeError as error:
        raise CorruptRecordError(f"not LZ4: {error}") from None
    _check(out)
    if not reader.eof:
        raise CorruptRecordError("the LZ4 data is truncated")
    return bytes(out)


def snappy_decode(payload: Any) -> bytes:
    """The text of snappy, in blocks or not; each states its length before it is decompressed.

    Raises:
        CorruptRecordError: it is larger than `MOST_BYTES`.
    """
    given = bytes(payload)
    if given.startswith(_XERIAL_MAGIC) and len(given) > _XERIAL_HEADER:
        stated, at = 0, _XERIAL_HEADER
        while at < len(given):
            stated += _stated_length(given, at + 4)
            at += 4 + max(0, int.from_bytes(given[at : at + 4], "big", signed=True))
    else:
        stated = _stated_length(given, 0)
    if stated > MOST_BYTES:
        raise _too_large()
    decoded: bytes = codec.snappy_decode(given)
    return decoded


def _stated_length(given: bytes, at: int) -> int:
    """The length at the begin of a text in snappy: seven bits in each byte, the lowest first."""
    length = 0
    for number, byte in enumerate(given[at : at + _VARINT_MOST]):
        length |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:  # noqa: PLR2004 - the last byte
            break
    return length


def _room(out: bytearray) -> int:
    return MOST_BYTES - len(out) + 1


def _check(out: bytearray) -> bytearray:
    if len(out) > MOST_BYTES:
        raise _too_large()
    return out


def _too_large() -> TooLargeBatch:
    return TooLargeBatch(f"a compressed batch of more than {MOST_BYTES // 1024 // 1024} MiB")


_DECODERS: dict[str, Callable[[Any], bytes]] = {
    "gzip_decode": gzip_decode,
    "zstd_decode": zstd_decode,
    "lz4_decode": lz4_decode,
    "snappy_decode": snappy_decode,
}
