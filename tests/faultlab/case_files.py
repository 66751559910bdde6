"""Files of captured cases: JSON lines, plain (`.jsonl`) or packed (`.jsonl.zst`)."""

from collections.abc import Iterable
from pathlib import Path

import zstandard

# Runs of one program are similar: a large compression window over all cases of a family exploits that.
_WINDOW_LOG = 24
_LEVEL = 19


def read_lines(file: Path) -> list[str]:
    """Return the lines of a file without empty lines."""
    data = file.read_bytes()
    if file.suffix == ".zst":
        with zstandard.ZstdDecompressor().stream_reader(data) as unpacked:
            data = unpacked.read()
    return [line for line in data.decode().split("\n") if line]


def write_lines(file: Path, lines: Iterable[str]) -> None:
    """Replace a file's lines."""
    data = "".join(f"{line}\n" for line in lines).encode()
    if file.suffix == ".zst":
        parameters = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=_WINDOW_LOG)
        data = zstandard.ZstdCompressor(compression_params=parameters).compress(data)
    file.write_bytes(data)


def case_files(folder: Path) -> list[Path]:
    """Return all case files in a folder, sorted by name."""
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.zst")])
