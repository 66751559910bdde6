"""The composed corpus is what its data files say, broad enough, and free of its own machinery."""

import random
import re
from collections import defaultdict
from pathlib import Path

import pytest

from classifiers import taxonomy
from classifiers.composition import kinds
from classifiers.composition.__main__ import CORPUS, SEED
from classifiers.composition.cases import compose
from classifiers.composition.made_values import World
from classifiers.data.labelled_cases import LabelledCase, check_ids, corpus_files, parse, read_file

MOST_BYTES = 2_500_000
LEAST_KINDS = 3
# What the little language leaves behind where a value is not filled in.
UNFILLED = re.compile(
    r"\$\(\d+-\d+\)|\$(?:ts|iso|kts|glog|node|pid|job|rank|user|wd|pkg|ln)\b|^>>|^~(?:progress|noise)|^@(?:log|node|rank)\b",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def cases() -> list[LabelledCase]:
    return [case for file in corpus_files(CORPUS) for case in read_file(file)]


def _texts(case: LabelledCase) -> list[str]:
    return [stream.text for stream in case.raw.streams] + [event.text for event in case.raw.node_events]


def test_the_data_files_give_the_corpus_that_is_there(cases: list[LabelledCase]) -> None:
    scenery = kinds.scenery()
    made = [parse(raw, raw["id"]) for kind in kinds.read() for raw in compose(kind, scenery, SEED)]
    check_ids(cases)
    assert {case.id: case.event for case in made} == {case.id: case.event for case in cases}


def test_every_label_has_three_kinds_and_more(cases: list[LabelledCase]) -> None:
    axes = taxonomy.load()
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for case in cases:
        for axis in ("cause", "category", "symptom"):
            for code in case.labels.allowed[axis]:
                seen[axis, code].add(case.kind)
    wanted = [("cause", code) for code in axes.causes]
    wanted += [("category", code) for code in axes.categories] + [("symptom", code) for code in axes.symptoms]
    poor = {one: sorted(seen[one]) for one in wanted if len(seen[one]) < LEAST_KINDS}
    assert poor == {}


def test_a_case_holds_its_first_line_and_says_where_it_comes_from(cases: list[LabelledCase]) -> None:
    for case in cases:
        assert case.provenance["origin"] == "composed"
        assert case.provenance["program"].startswith("compose/")
        if case.labels.root_line is not None:
            assert any(case.labels.root_line in text for text in _texts(case)), case.id


def test_no_value_is_left_unfilled(cases: list[LabelledCase]) -> None:
    left = {
        (case.id, found[0]) for case in cases for text in _texts(case) for found in [UNFILLED.search(text)] if found
    }
    assert left == set()


def test_files_are_small_enough_to_be_tracked() -> None:
    assert [file.name for file in Path(CORPUS).iterdir() if file.stat().st_size > MOST_BYTES] == []


def test_a_world_keeps_its_values_and_moves_its_clock() -> None:
    world = World(random.Random(3))
    first, second = world.fill("$node $pid $iso $(1-9)"), world.fill("$node $pid $iso")
    assert first.split()[:2] == second.split()[:2]
    assert first.split()[2] <= second.split()[2]
    with pytest.raises(KeyError):
        world.fill("$nobodyknows")


def test_an_entry_with_a_wrong_label_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "x.toml").write_text(
        '[[kind]]\nname = "odd"\ntruth = "HW.GPU.9 none none futile"\ntexts = ["x"]\n'
    )
    monkeypatch.setattr(kinds, "HERE", tmp_path)
    with pytest.raises(ValueError, match=r"x: odd: .*HW\.GPU\.9"):
        kinds.read()
