"""Composed cases follow from the kinds and the seed, are broad enough, and hold nothing of the template language."""

import random
import re
from collections import defaultdict
from pathlib import Path

import pytest

from classifiers import taxonomy
from classifiers.composition import kinds
from classifiers.composition.cases import compose
from classifiers.composition.synthetic_values import SyntheticValues
from classifiers.data.labelled_cases import LabelledCase, check_ids

pytestmark = pytest.mark.xdist_group("training cases")  # composed once for all files of the group

MIN_KINDS = 3
# What remains where the template language was not filled in.
UNFILLED = re.compile(
    r"\$\(\d+-\d+\)|\$(?:ts|iso|kts|glog|node|pid|job|rank|user|wd|pkg|ln)\b|^>>|^~(?:progress|noise)|^@(?:log|node|rank)\b",
    re.MULTILINE,
)


def _texts(case: LabelledCase) -> list[str]:
    return [stream.text for stream in case.raw.streams] + [event.text for event in case.raw.node_events]


def test_the_seed_decides_the_cases() -> None:
    routine_lines = kinds.routine_lines()
    some = kinds.read()[::200]
    once, again, other = ([compose(kind, routine_lines, seed) for kind in some] for seed in (1, 1, 2))
    assert once == again != other


@pytest.mark.slow
def test_every_label_has_three_kinds_and_more(composed_cases: list[LabelledCase]) -> None:
    check_ids(composed_cases)
    axes = taxonomy.load()
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for case in composed_cases:
        for axis in ("cause", "category", "symptom"):
            for code in case.labels.allowed[axis]:
                seen[axis, code].add(case.kind)
    wanted = [("cause", code) for code in axes.causes]
    wanted += [("category", code) for code in axes.categories] + [("symptom", code) for code in axes.symptoms]
    poor = {one: sorted(seen[one]) for one in wanted if len(seen[one]) < MIN_KINDS}
    assert poor == {}


@pytest.mark.slow
def test_a_case_holds_its_first_line_and_names_its_origin(composed_cases: list[LabelledCase]) -> None:
    for case in composed_cases:
        assert case.provenance["origin"] == "composed"
        assert case.provenance["program"].startswith("kinds/")
        assert case.provenance["medium"] in kinds.MEDIA
        if case.labels.root_line is not None:
            assert any(case.labels.root_line in text for text in _texts(case)), case.id


@pytest.mark.slow
def test_no_value_is_left_unfilled(composed_cases: list[LabelledCase]) -> None:
    left = {
        (case.id, found[0])
        for case in composed_cases
        for text in _texts(case)
        for found in [UNFILLED.search(text)]
        if found
    }
    assert left == set()


def test_a_world_keeps_its_values_and_moves_its_clock() -> None:
    synthetic = SyntheticValues(random.Random(3))
    first, second = synthetic.fill("$node $pid $iso $(1-9)"), synthetic.fill("$node $pid $iso")
    assert first.split()[:2] == second.split()[:2]
    assert first.split()[2] <= second.split()[2]
    with pytest.raises(KeyError):
        synthetic.fill("$nobodyknows")


GOOD = """
[[kind]]
id = "HW.GPU.2.odd"
medium = "log"
source = "NVIDIA driver"
labels = { category = "none", symptom = "none", retry = "helps" }
texts = ["x"]
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("HW.GPU.2.odd", "HW.GPU.9.odd"), r"hardware/x: HW\.GPU\.9\.odd: .*HW\.GPU\.9"),
        (("HW.GPU.2.odd", "HW.GPU.2.Odd_1"), "id: expected <cause>.<slug>"),
        (('"log"', '"forum"'), "medium: expected log or report"),
        (('["x"]', '["1", "2", "3", "4", "5", "6"]'), "texts: expected at most 5, got 6"),
        (('["x"]', "[]"), "texts: expected at least one"),
        (("source =", "sauce ="), "field 'source' is missing"),
        (("texts =", "words = 1\ntexts ="), "unknown field 'words'"),
        (('symptom = "none", ', ""), "labels: expected category, symptom, retry"),
        (("", GOOD), "the id occurs twice"),
        (("\n[[kind]]", 'scene = "plain"\n[[kind]]'), "hardware/x: unknown field 'scene'"),
    ],
)
def test_a_wrong_entry_is_refused_by_file_and_id(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    (tmp_path / "hardware").mkdir()
    text = GOOD.replace(*change) if change[0] else GOOD + change[1]
    (tmp_path / "hardware" / "x.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        kinds.read(tmp_path)


def test_an_entry_states_only_what_differs_from_the_top_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("""
medium = "log"
source = "NVIDIA driver"
labels = { category = "none", symptom = "none", retry = "helps" }

[[kind]]
id = "HW.GPU.2.as-the-file-says"
texts = ["x"]

[[kind]]
id = "HW.GPU.2.its-own"
medium = "report"
labels = { retry = "after_repair" }
texts = ["y"]
""")
    first, second = kinds.read(tmp_path)
    assert (first.medium, first.source, first.labels["retry"]) == ("log", "NVIDIA driver", "helps")
    assert (second.medium, second.source) == ("report", "NVIDIA driver")
    assert (second.labels["symptom"], second.labels["retry"]) == ("none", "after_repair")
