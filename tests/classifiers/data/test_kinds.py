"""The kinds of failure are laid out so that a reader finds them, and none is stored twice."""

import re
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
# The folders of a large cause by the beginning of the code of a symptom; "none" is a failure without such a symptom.
STAGES = {
    "A.": "build-and-import",
    "B.": "communication-setup",
    "C.": "data-and-model-preparation",
    "D.1.": "training-errors",
    "D.2.": "training-behaviour",
    "none": "no-distributed-symptom",
}


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
        assert "-to-" not in topic[-1], f"{kind.file}: a topic, not a range of names"
        assert kind.source


def slug(title: str) -> str:
    """A title of the taxonomy as the name of a folder."""
    return re.sub(r"[^a-z]+", "-", title.lower().replace("&", "and"))


def folders_of(kind: Kind) -> tuple[str, str]:
    """The folders for the stage and the symptom of a kind, or for its category if it has no symptom."""
    axes = taxonomy.load()
    symptom, category = kind.labels["symptom"], kind.labels["category"]
    stage = next(folder for prefix, folder in STAGES.items() if symptom.startswith(prefix))
    if symptom == "none":
        return stage, "no-category" if category == "none" else slug(axes.categories[category].title)
    title = axes.symptoms[symptom].title
    return stage, f"other-{stage}" if title == "Others" else slug(title)


def misplaced(packaged: list[Kind]) -> list[str]:
    """The kinds in the folder of another stage, symptom or category; `other.toml` of a stage holds several."""
    found = []
    for kind in packaged:
        _, _, stage, *inner = kind.file.split("/")
        if stage not in STAGES.values():
            continue  # a topic of a small cause
        expected = folders_of(kind)
        if stage != expected[0] or (inner and inner[0] not in (expected[1], "other")):
            found.append(kind.id)
    return found


def test_a_kind_lies_in_the_folder_of_its_stage_and_symptom(packaged: list[Kind]) -> None:
    assert misplaced(packaged) == []
    hang = next(kind for kind in packaged if "/training-behaviour/hang/" in kind.file)
    assert misplaced([replace(hang, labels={**hang.labels, "symptom": "D.2.3"})]) == [hang.id]
    assert misplaced([replace(hang, labels={**hang.labels, "symptom": "B.2"})]) == [hang.id]
    none = next(kind for kind in packaged if "/no-distributed-symptom/no-category/" in kind.file)
    assert misplaced([replace(none, labels={**none.labels, "category": "DA.1"})]) == [none.id]


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
    files = [file for file in DATA.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert sum(file.stat().st_size for file in files) <= MAX_DATA_BYTES


@pytest.mark.slow
def test_no_kind_is_nearly_another(packaged: list[Kind]) -> None:
    assert [(one.id, other.id, round(cosine, 2)) for one, other, cosine in similar(packaged)] == []


def test_a_near_duplicate_is_found(packaged: list[Kind]) -> None:
    first = next(kind for kind in packaged if not kind.is_run)
    words = [text.replace("the", "a") for text in first.texts]
    again = replace(first, id=f"{first.id}-again", texts=words)
    [(one, other, _)] = similar([*packaged[:200], again])
    assert {one.id, other.id} == {first.id, again.id}
