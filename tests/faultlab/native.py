"""Builds packages from source archives as `native.toml` declares: fetch, edit, compile, install."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class NativeError(RuntimeError):
    """The archive does not match its recipe."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A text of one file of the archive and its replacement."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recipe of one package; `below` is the environment whose packages it is compiled against and can import."""

    below: str
    requirement: str
    hash: str
    variables: Mapping[str, str]
    edits: tuple[Edit, ...]


@cache
def recipes() -> Mapping[str, Recipe]:
    """Return the recipes by environment."""
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        name: Recipe(
            row["below"],
            row["requirement"],
            row["hash"],
            row["variables"],
            tuple(Edit(edit["file"], edit["old"], edit["new"]) for edit in row["edits"]),
        )
        for name, row in data.items()
    }


def edit(folder: Path, edits: tuple[Edit, ...]) -> None:
    """Replace texts in the files of an unpacked archive.

    Raises:
        NativeError: a file does not contain the text that an edit replaces.
    """
    for one in edits:
        file = folder / one.file
        text = file.read_text(encoding="utf-8")
        if one.old not in text:
            raise NativeError(f"{one.file}: expected {one.old!r}")
        file.write_text(text.replace(one.old, one.new), encoding="utf-8")


def unpack(archive: Path, sha256: str, into: Path) -> Path:
    """Unpack a source archive; return its only folder.

    Raises:
        NativeError: its sha256 differs.
    """
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != sha256:
        raise NativeError(f"{archive.name}: sha256 {found}, expected {sha256}")
    with tarfile.open(archive) as files:
        files.extractall(into, filter="data")
    (folder,) = (entry for entry in into.iterdir() if entry.is_dir())
    return folder


def see(python: Path, packages: Path) -> None:
    """Let a venv also import the packages of another environment."""
    (own,) = python.parents[1].glob("lib/python*/site-packages")
    (own / "below.pth").write_text(f"{packages}\n", encoding="utf-8")


def build(python: Path, recipe: Recipe) -> None:
    """Fetch, edit, compile and install a recipe's package into the venv of that interpreter.

    Raises:
        NativeError: the archive does not match its recipe.
        subprocess.CalledProcessError: pip could not fetch or build it.
    """
    folder = Path(tempfile.mkdtemp(prefix="native"))
    pip = (str(python), "-m", "pip")
    try:
        # Fetching runs the archive's setup.py for name and version: no build, but its imports must be installed.
        fetched = folder / "archive"
        only = ("--no-deps", "--no-binary=:all:", "--no-build-isolation", f"--dest={fetched}")
        subprocess.run([*pip, "download", "--quiet", *only, recipe.requirement], check=True)
        (archive,) = fetched.glob("*.tar.gz")
        source = unpack(archive, recipe.hash, folder / "source")
        edit(source, recipe.edits)
        # Packed again, so that pip compiles it in its usual place: the paths in the messages are then pip's own.
        packed = folder / archive.name
        with tarfile.open(packed, "w:gz") as files:
            files.add(source, source.name)
        env = {**os.environ, **recipe.variables, "PATH": f"{python.parent}:{os.environ['PATH']}"}
        words = [*pip, "install", "--quiet", "--no-build-isolation", "--no-deps", str(packed)]
        subprocess.run(words, check=True, env=env)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
