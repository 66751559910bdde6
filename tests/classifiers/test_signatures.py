from pathlib import Path

import pytest

from classifiers import signatures
from classifiers.signatures import CatalogueError

ENTRY = """
version = 1
family = "pytorch"

[[signature]]
id = "pytorch.cuda-oom"
title = "No memory left on the device"
literals = ["cuda out of memory"]
role = "initiating"
strength = "strong"
cause = "USER.1"
source = "PyTorch"
examples = ["RuntimeError: CUDA out of memory."]
near_misses = ["CUDA memory in use: 3 GiB"]
"""


def read(folder: Path, text: str) -> signatures.Catalogue:
    (folder / "pytorch.toml").write_text(text)
    return signatures.read(folder)


def test_every_entry_finds_its_examples_and_none_of_its_near_misses() -> None:
    catalogue = signatures.packaged()
    missed = [(one.id, line) for one in catalogue.entries for line in one.examples if not one.finds(line)]
    taken = [(one.id, line) for one in catalogue.entries for line in one.near_misses if one.finds(line)]
    assert missed == []
    assert taken == []


def test_what_the_packaged_entries_refer_to_is_there() -> None:
    signatures.check_references(signatures.packaged())


def test_weights_sum_to_one(tmp_path: Path) -> None:
    text = ENTRY.replace('cause = "USER.1"', 'cause = { "USER.1" = 3, "SYS.4" = 1 }')
    assert read(tmp_path, text).by_id["pytorch.cuda-oom"].causes == {"USER.1": 0.75, "SYS.4": 0.25}


def test_a_short_literal_stands_between_word_edges(tmp_path: Path) -> None:
    entry = read(tmp_path, ENTRY.replace('"cuda out of memory"', '"roce"')).entries[0]
    assert entry.finds("RoCE: no route")
    assert not entry.finds("ProcessRaisedException")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('role = "initiating"', 'role = "first"'), "role: expected one of"),
        (('cause = "USER.1"', 'cause = "USER.99"'), "not a code of that axis"),
        (('cause = "USER.1"', 'causes = "USER.1"'), "unknown field 'causes'"),
        (('source = "PyTorch"', "pattern = '(?<=a)b'\nsource = \"x\""), "look-around"),
        (('source = "PyTorch"', "pattern = '('\nsource = \"x\""), "pattern"),
        (('literals = ["cuda out of memory"]', 'literals = ["a"]'), "shorter than"),
        (('source = "PyTorch"\n', ""), "source: expected a text"),
        (('id = "pytorch.cuda-oom"', 'id = "nvidia.cuda-oom"'), "id must be"),
        (('family = "pytorch"', 'family = "nvidia"'), "expected version"),
        (("[[signature]]", "[[signature"), "not TOML"),
        (('strength = "strong"', 'strength = "strong"\nwhen = { state = ["x"] }'), "when"),
        (('near_misses = ["CUDA memory in use: 3 GiB"]', ""), "near_misses"),
    ],
)
def test_a_wrong_entry_is_refused_by_name(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    with pytest.raises(CatalogueError, match=r"pytorch\.toml") as refused:
        read(tmp_path, ENTRY.replace(*change))
    assert told in str(refused.value)


def test_an_id_stands_once(tmp_path: Path) -> None:
    body = ENTRY.split("[[signature]]")[1]
    with pytest.raises(CatalogueError, match="stands twice"):
        read(tmp_path, f"{ENTRY}\n[[signature]]{body}")


def test_a_reference_into_the_void_is_told(tmp_path: Path) -> None:
    catalogue = read(tmp_path, ENTRY.replace('source = "', 'unless = ["kernel.none"]\nsource = "'))
    with pytest.raises(CatalogueError, match=r"kernel\.none"):
        signatures.check_references(catalogue)
