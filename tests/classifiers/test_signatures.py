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


def test_every_entry_matches_its_examples_and_none_of_its_near_misses() -> None:
    catalogue = signatures.packaged()
    missed = [(one.id, line) for one in catalogue.entries for line in one.examples if not one.matches(line)]
    wrong = [(one.id, line) for one in catalogue.entries for line in one.near_misses if one.matches(line)]
    assert missed == []
    assert wrong == []


def test_references_of_the_packaged_entries_exist() -> None:
    signatures.check_references(signatures.packaged())


def test_weights_sum_to_one(tmp_path: Path) -> None:
    text = ENTRY.replace('cause = "USER.1"', 'cause = { "USER.1" = 3, "SYS.4" = 1 }')
    assert read(tmp_path, text).by_id["pytorch.cuda-oom"].causes == {"USER.1": 0.75, "SYS.4": 0.25}


def test_a_short_literal_matches_whole_words_only(tmp_path: Path) -> None:
    entry = read(tmp_path, ENTRY.replace('"cuda out of memory"', '"roce"')).entries[0]
    assert entry.matches("RoCE: no route")
    assert not entry.matches("ProcessRaisedException")


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_a_wrong_entry_is_refused_and_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(CatalogueError, match=r"pytorch\.toml") as refused:
        read(tmp_path, ENTRY.replace(*change))
    assert message in str(refused.value)


def test_a_duplicate_id_is_refused(tmp_path: Path) -> None:
    body = ENTRY.split("[[signature]]")[1]
    with pytest.raises(CatalogueError, match="is used twice"):
        read(tmp_path, f"{ENTRY}\n[[signature]]{body}")


def test_an_unknown_reference_is_refused(tmp_path: Path) -> None:
    catalogue = read(tmp_path, ENTRY.replace('source = "', 'unless = ["kernel.none"]\nsource = "'))
    with pytest.raises(CatalogueError, match=r"kernel\.none"):
        signatures.check_references(catalogue)
