from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from classifiers import signatures
from classifiers.signatures import CatalogueError

PARSER: Any = import_module("re._parser")  # the syntax tree of a pattern; the standard library has no public one
WORTH_A_LITERAL = 7  # characters; a shorter alternative is too common to be searched for alone (judgement)

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
        (('source = "PyTorch"', "pattern = '('\nsource = \"x\""), "pattern: missing ): (, got '('"),
        (('literals = ["cuda out of memory"]', 'literals = ["a"]'), "shorter than"),
        (('source = "PyTorch"\n', ""), "source: expected a text"),
        (('id = "pytorch.cuda-oom"', 'id = "nvidia.cuda-oom"'), "id: expected the family 'pytorch'"),
        (('family = "pytorch"', 'family = "nvidia"'), "expected version"),
        (("[[signature]]", "[[signature"), "not TOML"),
        (('strength = "strong"', 'strength = "strong"\nwhen = { state = ["x"] }'), "when"),
        (('near_misses = ["CUDA memory in use: 3 GiB"]', ""), "near_misses"),
        (('source = "PyTorch"', "pattern = 'on {{gpu}}'\nsource = \"x\""), "entry 1: 'gpu' is not in [words] above it"),
    ],
)
def test_a_wrong_entry_is_refused_and_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(CatalogueError, match=r"pytorch\.toml") as refused:
        read(tmp_path, ENTRY.replace(*change))
    assert message in str(refused.value)


def test_words_of_a_file_stand_for_parts_of_its_expressions(tmp_path: Path) -> None:
    words = "[words]\ncard = '(?:card|gpu)'\nplace = '{{card}} \\d{1,2}'\n\n[[signature]]"
    entry = ENTRY.replace("[[signature]]", words).replace(
        'source = "', "pattern = '(?i)memory on {{place}}'\nsource = \""
    )
    found = read(tmp_path, entry).by_id["pytorch.cuda-oom"].pattern
    assert found is not None
    assert found.pattern == r"(?i)memory on (?:card|gpu) \d{1,2}"
    assert found.matches(b"CUDA out of memory on GPU 3")


def test_a_duplicate_id_is_refused(tmp_path: Path) -> None:
    body = ENTRY.split("[[signature]]")[1]
    with pytest.raises(CatalogueError, match="is used twice"):
        read(tmp_path, f"{ENTRY}\n[[signature]]{body}")


def test_an_unknown_reference_is_refused(tmp_path: Path) -> None:
    catalogue = read(tmp_path, ENTRY.replace('source = "', 'unless = ["kernel.none"]\nsource = "'))
    with pytest.raises(CatalogueError, match=r"kernel\.none"):
        signatures.check_references(catalogue)


def fixed_texts(tree: Any) -> list[str]:
    """The texts a parsed pattern can match that hold no wildcard, in lower case.

    An alternative with a wildcard is left out: its literal may stand for what the wildcard matches.
    """
    texts = [""]
    for kind, value in tree:
        texts = [text + part for text in texts for part in dict.fromkeys(fixed_parts(str(kind), value))]
    return texts


def fixed_parts(kind: str, value: Any) -> list[str]:
    """The texts one node of a parsed pattern can match; none where it is a wildcard."""
    match kind:
        case "LITERAL" | "AT":
            return [chr(value).lower() if kind == "LITERAL" else ""]
        case "IN" if all(str(inner) == "LITERAL" for inner, _ in value):
            return [chr(letter).lower() for _, letter in value]
        case "BRANCH":
            return [text for branch in value[1] for text in fixed_texts(branch)]
        case "SUBPATTERN":
            return fixed_texts(value[3])
        case "MAX_REPEAT" | "MIN_REPEAT" if int(value[1]) == 1:
            return fixed_texts(value[2]) + ([""] if value[0] == 0 else [])
        case _:
            return []


def test_a_literal_reaches_every_fixed_alternative_of_a_pattern() -> None:
    """A line is tried against a pattern only where it holds a literal, so an alternative without one never matches."""
    unreached = [
        (entry.id, text)
        for entry in signatures.packaged().entries
        if entry.pattern is not None
        for text in fixed_texts(PARSER.parse(entry.pattern.pattern.replace("(?i)", "")))
        if len(text) >= WORTH_A_LITERAL
        if not any(signatures.contains_literal(literal, text) for literal in entry.literals)
    ]
    assert unreached == []
