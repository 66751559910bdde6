"""Packages compiled for the lab's environments: the right archive, edited where it must be."""

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.faultlab import environment, native
from tests.faultlab.native import Edit, NativeError


def archive(folder: Path, text: str) -> Path:
    made = folder / "thing-1.0.tar.gz"
    with tarfile.open(made, "w:gz") as files:
        entry = tarfile.TarInfo("thing-1.0/CMakeLists.txt")
        entry.size = len(text.encode())
        files.addfile(entry, io.BytesIO(text.encode()))
    return made


def test_every_recipe_belongs_to_an_environment_and_lies_on_another() -> None:
    for name, recipe in native.recipes().items():
        assert name in environment.RECIPES
        assert recipe.below in environment.RECIPES
        assert recipe.below not in native.recipes()
        assert environment.below(name) == environment.root() / recipe.below
        assert "==" in recipe.requirement
        assert len(recipe.hash) == 64
    assert environment.below("torch") is None
    assert environment.below("") is None


def test_an_archive_is_unpacked_and_edited(tmp_path: Path) -> None:
    made = archive(tmp_path, "set(CMAKE_CXX_STANDARD 14)\nproject(thing)\n")
    folder = native.unpack(made, hashlib.sha256(made.read_bytes()).hexdigest(), tmp_path / "source")
    assert folder.name == "thing-1.0"
    native.edit(folder, (Edit("CMakeLists.txt", "STANDARD 14", "STANDARD 20"),))
    assert (folder / "CMakeLists.txt").read_text(encoding="utf-8") == "set(CMAKE_CXX_STANDARD 20)\nproject(thing)\n"


def test_another_archive_than_the_recipes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NativeError, match=r"thing-1\.0\.tar\.gz: sha256 \w{64}, expected 0000"):
        native.unpack(archive(tmp_path, ""), "0000", tmp_path / "source")
    assert not (tmp_path / "source").exists()


def test_an_edit_that_finds_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("new version\n", encoding="utf-8")
    with pytest.raises(NativeError, match=r"a\.txt: expected 'old version'"):
        native.edit(tmp_path, (Edit("a.txt", "old version", "x"),))


def test_a_venv_sees_the_packages_of_the_one_below(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    (below / "from_below.py").write_text("told = 7\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    native.see(python, below)
    done = subprocess.run(
        [str(python), "-c", "import from_below; print(from_below.told)"], capture_output=True, check=True
    )
    assert done.stdout.strip() == b"7"
