"""Log objects as files."""

import os
import stat
from datetime import date
from pathlib import Path

import pytest

from service.errors import Unavailable
from service.log_storage.files import FileObjects

KEY = f"2026-11-20/orion/7/{'0' * 16}-{'1' * 32}.json.zst"


def test_only_the_owner_reads_files_and_folders(tmp_path: Path) -> None:
    FileObjects(tmp_path).put(KEY, b"text")
    file = tmp_path / KEY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for folder in file.parents[:3]:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_names_of_new_folders_are_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    FileObjects(tmp_path).put(KEY, b"text")
    file = tmp_path / KEY
    assert [one for one in synced if one.is_dir()] == [*file.parents[:3], tmp_path]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device", descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="No space left"):
        FileObjects(tmp_path).put(KEY, b"text")
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


def test_folders_that_are_no_days_are_left_alone(tmp_path: Path) -> None:
    objects = FileObjects(tmp_path)
    objects.put(KEY, b"text")
    (tmp_path / "notes").mkdir()
    (tmp_path / "2026-13-45").mkdir()
    (tmp_path / "2026-11-19").symlink_to(tmp_path / "notes")
    assert objects.days() == [date(2026, 11, 20)]


def test_a_file_in_the_place_of_the_folder_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "2026-11-20").write_text("")
    with pytest.raises(Unavailable):
        FileObjects(tmp_path).put(KEY, b"text")
