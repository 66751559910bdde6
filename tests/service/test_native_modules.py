"""Compiled modules are used where they fit this Python and the sources, and never half of them."""

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import orjson
import pytest

from service import native_modules


@pytest.fixture(autouse=True)
def own_import_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_modules, "_forbidden", False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "made_up", raising=False)


def compiled(folder: Path, sources: Mapping[str, str], *, suffix: str | None = None, module: str = "made_up") -> Path:
    (folder / "made_up.py").write_text("ANSWER = 42\n", encoding="utf-8")
    manifest = {
        "suffix": native_modules.suffix() if suffix is None else suffix,
        "modules": {module: "made_up.py"},
        "sources": dict(sources),
    }
    (folder / native_modules.MANIFEST).write_bytes(orjson.dumps(manifest))
    return folder


def test_modules_that_fit_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "classifiers/masking.py"
    folder = compiled(tmp_path, {source: native_modules.digest(native_modules.ROOT / source)})
    assert native_modules.use(folder)
    assert native_modules.in_use()
    monkeypatch.setitem(sys.modules, "made_up", import_module("made_up"))
    assert sys.modules["made_up"].__file__ == str(folder / "made_up.py")


@pytest.mark.parametrize(
    "sources", [{"classifiers/masking.py": "0" * 32}, {"classifiers/no_longer_there.py": "0" * 32}]
)
def test_modules_of_other_sources_are_not_used(tmp_path: Path, sources: Mapping[str, str]) -> None:
    assert not native_modules.use(compiled(tmp_path, sources))
    assert not native_modules.in_use()


def test_modules_for_another_python_are_not_used(tmp_path: Path) -> None:
    assert not native_modules.use(compiled(tmp_path, {}, suffix=".cpython-27.so"))


def test_modules_are_not_mixed_with_sources_that_are_loaded(tmp_path: Path) -> None:
    assert not native_modules.use(compiled(tmp_path, {}, module=native_modules.__name__))


@pytest.mark.parametrize("content", [None, b"", b"[", b"{}"])
def test_a_folder_without_a_list_of_modules_is_left_alone(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / native_modules.MANIFEST).write_bytes(content)
    assert not native_modules.use(tmp_path)


def test_tests_run_the_sources(tmp_path: Path) -> None:
    native_modules.forbid()
    assert not native_modules.use(compiled(tmp_path, {}))
