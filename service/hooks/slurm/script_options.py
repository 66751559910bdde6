"""The `#SBATCH` lines of a job's script, before the hook submits the script again as root.

`sbatch` parses these lines with the rights of whoever calls it. Some options read files of this machine into the job
(`--bbf`, `--nodefile`, `--export-file`), set a priority that only administrators may set, or keep `sbatch` waiting. A
job's owner can write them into a script without being refused: with `--wrap`, or by an option of the same name on the
command line. Tested on Slurm 24.11.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

DIRECTIVE = "#SBATCH"
# sbatch also reads the lines of PBS and LSF; what they ask for is in the job's record.
FOREIGN = ("#PBS", "#BSUB")

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
KEPT: frozenset[str] = frozenset(_LISTS["kept"])
LEFT_OUT: frozenset[str] = frozenset(_LISTS["left_out"])
KEPT_PREFIX = "container-"  # options of container plugins, which act with the job's rights
_KEPT_LETTERS, _KEPT_ALONE = frozenset("ABCDGJLNbcdeimnopqtwx"), frozenset("HOks")
_LEFT_OUT_LETTERS, _LEFT_OUT_ALONE = frozenset("FMSa"), frozenset("QWv")
_LISTS_OF_NODES = frozenset({"nodelist", "exclude", "w", "x"})  # one with a slash is the name of a file to read
_WORD = re.compile(r"""\s*((?:[^\s"'\\#]|"[^"\\]*"|'[^'\\]*')+)""")
_COMPONENTS = frozenset({"hetjob", "packjob"})


class UnsafeScript(Exception):
    """The script has an option that can't be repeated with the hook's rights; the text names it."""


def without_privileged_options(script: str) -> str:
    """Return the script with only those options that its owner may give.

    Args:
        script: the batch script.

    Raises:
        UnsafeScript: an option is not known here, or a line can't be read with certainty.
    """
    lines = script.split("\n")
    for number, line in enumerate(lines):
        start = line.strip(" \t\r\v\f")
        if start and not start.startswith("#"):
            break  # sbatch reads no options after the first command
        if line.startswith(FOREIGN):
            lines[number] = f"#{line}"
        elif line.startswith(DIRECTIVE):
            kept = list(_kept(line.removeprefix(DIRECTIVE)))
            lines[number] = " ".join((DIRECTIVE, *kept)) if kept else f"#{line}"
    return "\n".join(lines)


def _kept(text: str) -> Iterator[str]:
    """Yield the words of a line that stay; the value of an option is attached to it, or is the next word."""
    name, keep = None, False
    for word in _words(text):
        plain = re.sub("[\"']", "", word)
        value = plain
        if plain.startswith("-"):
            name, value = _option(plain)
            keep = name in KEPT | _KEPT_LETTERS | _KEPT_ALONE or name.startswith(KEPT_PREFIX)
        elif name is None or plain in _COMPONENTS:
            raise UnsafeScript(plain[:50])
        if keep and (
            (name in _LISTS_OF_NODES and "/" in value) or (name == "nice" and not re.fullmatch(r"\d*", value))
        ):
            raise UnsafeScript(f"{name} {value}"[:50])
        if keep:
            yield word


def _words(text: str) -> Iterator[str]:
    """Yield the words of a line up to its comment."""
    at = 0
    while (found := _WORD.match(text, at)) is not None:
        yield found[1]
        at = found.end()
    rest = text[at:].lstrip()
    if rest and not rest.startswith("#"):
        raise UnsafeScript(f"{DIRECTIVE}{text}"[:50])


def _option(word: str) -> tuple[str, str]:
    """Return the name of an option, without dashes, and the value attached to it.

    Raises:
        UnsafeScript: it is not known, or abbreviated.
    """
    if word.startswith("--"):
        name, _, value = word[2:].partition("=")
        if name in KEPT or name in LEFT_OUT or name.startswith(KEPT_PREFIX):
            return name, value
    elif word[1:2] in _KEPT_LETTERS | _LEFT_OUT_LETTERS or word[1:] in _KEPT_ALONE | _LEFT_OUT_ALONE:
        return word[1:2], word[2:]
    raise UnsafeScript(word[:50])
