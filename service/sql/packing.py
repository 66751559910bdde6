"""JSON in a binary column, compressed with zstd if it is long. The magic number of a zstd frame identifies it."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import orjson
import zstandard

from classifiers.contracts import LogStream
from service.errors import DAMAGED, DamagedData, damage_translated

WORTH_COMPRESSING = 512  # bytes; for shorter data the frame costs about what it saves
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL = 1  # higher levels gain little on text this short
_LEAST_REPEAT = 6  # bytes; a sixth faster than the level's default of 5, with output half a percent larger on real logs
# Of one value, unpacked: far above an event of 16 MiB with its logs. A frame of 30 KB may state and hold 1 GB.
MOST_BYTES = 256 * 1024 * 1024
_local = threading.local()  # zstd contexts may not be shared between threads


def compress(data: bytes) -> bytes:
    """`data`, compressed if it is long enough."""
    return data if len(data) < WORTH_COMPRESSING else compress_always(data)


def compress_always(data: bytes) -> bytes:
    """`data` as one zstd frame."""
    compressor = getattr(_local, "compressor", None)
    if compressor is None:
        chosen = zstandard.ZstdCompressionParameters(compression_level=_LEVEL, min_match=_LEAST_REPEAT)
        compressor = _local.compressor = zstandard.ZstdCompressor(compression_params=chosen)
    packed: bytes = compressor.compress(data)
    return packed


def decompress(data: bytes) -> bytes:
    """Reverse of `compress`.

    Raises:
        DamagedData: it is no whole frame, or larger than any stored value.
    """
    if data[:4] != _ZSTD_MAGIC:
        return bytes(data)
    decompressor = getattr(_local, "decompressor", None)
    if decompressor is None:
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    try:
        if not 0 <= zstandard.frame_content_size(data) <= MOST_BYTES:  # it takes that much memory at once; -1: unknown
            raise DamagedData(DAMAGED)
        plain: bytes = decompressor.decompress(data)
    except zstandard.ZstdError:
        raise DamagedData(DAMAGED) from None
    return plain


def dump(value: Any) -> bytes:
    """The value as JSON. Lone surrogates become U+FFFD."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:
        return orjson.dumps(_encodable(value))


def pack(value: Any) -> bytes:
    """The value as JSON, compressed if it is long."""
    return compress(dump(value))


def unpack(data: bytes) -> Any:
    """The value that `pack` or `dump` encoded.

    Raises:
        DamagedData: it is no such value.
    """
    with damage_translated():
        return orjson.loads(decompress(data))


def pack_streams(streams: Sequence[LogStream]) -> bytes | None:
    """Log streams as one blob; None if there are none."""
    return compress(dump_streams(streams)) if streams else None


def dump_streams(streams: Sequence[LogStream]) -> bytes:
    """Log streams as JSON."""
    return dump([[s.text, s.rank, s.node, s.stream, s.first_line, s.windows, s.missing] for s in streams])


@damage_translated()
def streams_of(values: Sequence[Sequence[Any]]) -> tuple[LogStream, ...]:
    """The log streams of the JSON value that `pack_streams` encoded.

    Raises:
        DamagedData: it is no such value.
    """
    return tuple(
        LogStream(
            text=text,
            rank=rank,
            node=node,
            stream=stream,
            first_line=first_line,
            windows=tuple((offset, line) for offset, line in windows),
            missing=missing,
        )
        for text, rank, node, stream, first_line, windows, missing in values
    )


def _encodable(value: Any) -> Any:
    """The value in types that JSON has: invalid strings repaired, integers beyond 64 bits and other types as text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if is_dataclass(value) and not isinstance(value, type):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(_encodable(key)): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    return str(value)
