"""The kinds of failure are laid out so that a reader finds them, and none is stored twice."""

from collections import Counter
from dataclasses import replace
from importlib.resources.abc import Traversable
from pathlib import Path

import pytest

from classifiers import taxonomy
from classifiers.composition import kinds
from classifiers.composition.kinds import Kind
from tests.classifiers.data.near_duplicates import similar

MAX_KINDS = 40
MAX_BYTES = 100_000
MAX_ENTRIES = 25
MAX_DATA_BYTES = 10_000_000
DATA = Path(str(kinds.folder())).parent


@pytest.fixture(scope="module")
def packaged() -> list[Kind]:
    return kinds.read()


def test_a_file_lies_under_its_side_and_cause_and_says_its_topic(packaged: list[Kind]) -> None:
    axes = taxonomy.load()
    for kind in packaged:
        side, cause, *topic = kind.file.split("/")
        assert (side, cause) == (axes.side_of(kind.labels["cause"]), kind.labels["cause"]), kind.id
        assert topic
        assert all(part.replace("-", "").isalpha() and part.islower() for part in topic), kind.file
        assert kind.source


def test_files_and_folders_are_small(packaged: list[Kind]) -> None:
    assert {file: count for file, count in Counter(kind.file for kind in packaged).items() if count > MAX_KINDS} == {}
    large = [name for name, file in kinds.kind_files(kinds.folder()) if len(file.read_bytes()) > MAX_BYTES]
    assert large == []
    assert list(_crowded(kinds.folder())) == []


def _crowded(folder: Traversable) -> list[str]:
    entries = list(folder.iterdir())
    inner = [name for entry in entries if entry.is_dir() for name in _crowded(entry)]
    return [*inner, *([folder.name] if len(entries) > MAX_ENTRIES else [])]


def test_all_data_together_is_small() -> None:
    assert sum(file.stat().st_size for file in DATA.rglob("*") if file.is_file()) <= MAX_DATA_BYTES


@pytest.mark.slow
def test_no_kind_is_nearly_another(packaged: list[Kind]) -> None:
    assert [(one.id, other.id, round(cosine, 2)) for one, other, cosine in similar(packaged)] == []


def test_a_near_duplicate_is_found(packaged: list[Kind]) -> None:
    first = next(kind for kind in packaged if not kind.is_run)
    words = [text.replace("the", "a") for text in first.texts]
    again = replace(first, id=f"{first.id}-again", texts=words)
    [(one, other, _)] = similar([*packaged[:200], again])
    assert {one.id, other.id} == {first.id, again.id}
