"""Declarations: what they become, and how wrong ones are told."""

from collections import defaultdict
from pathlib import Path

import pytest

from tests.faultlab import program
from tests.faultlab.program import DeclarationError, read

GOOD = """
framework = "pytorch"
environment = ""

[sets]
short = [{ name = "b", more = ["--x", "1"] }]

[[program]]
name = "p"
file = "p.py"
path = "a.b"
kind = "k"
args = ["--at", "{seed}"]
sets = ["short"]
labels = { cause = "SYS.2", category = "", symptom = "D.1.6", retry = "after_repair" }
ok = { cause = ["USER.1"], symptom = ["none"] }
root = { rank = 0, line = "No space" }
variant = [{ name = "a", labels = { category = "DL.4" }, seeds = [1, 2] }]
"""


def write(folder: Path, text: str) -> Path:
    (folder / "p.py").write_text("1 / 0\n", encoding="utf-8")
    file = folder / "f.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_variant_overrides_its_program_and_sets_add_variants(tmp_path: Path) -> None:
    own, shared = read(write(tmp_path, GOOD))
    assert (own.variant, own.seeds, own.labels["category"]) == ("a", (1, 2), "DL.4")
    assert (shared.variant, shared.args, shared.labels["category"]) == ("b", ("--at", "{seed}", "--x", "1"), "none")
    assert shared.labels["side"] == "system"
    assert shared.labels["symptom_ok"] == ["D.1.6", "none"]


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ('cause = "SYS.2"', 'cause = "SYS.99"', "labels.cause"),
        ('cause = "SYS.2"', 'side = "user", cause = "SYS.2"', "is not of side user"),
        ('retry = "after_repair"', 'retry = "perhaps"', "labels.retry"),
        ('file = "p.py"', 'file = "q.py"', "q.py is not there"),
        ('path = "a.b"', "", "path: missing"),
        ('line = "No space"', 'line = "("', "root.line"),
        ('kind = "k"', 'kind = "k"\nlauncher = "slingshot"', "launcher: 'slingshot'"),
        ('kind = "k"', 'kind = "k"\ncolour = "red"', "unknown key"),
        ('sets = ["short"]', 'sets = ["long"]', "sets: ['long']"),
        ('name = "a"', 'name = "b"', "given twice"),
        ("[[program]]", "[[program", "f.toml"),
    ],
)
def test_a_wrong_declaration_names_file_program_and_field(tmp_path: Path, old: str, new: str, result: str) -> None:
    assert old in GOOD
    with pytest.raises(DeclarationError, match=r"f\.toml") as caught:
        list(read(write(tmp_path, GOOD.replace(old, new))))
    assert result in str(caught.value)


def test_all_declared_programs_are_sound_and_at_most_five_share_a_failing_path() -> None:
    programs = defaultdict(set)
    for plan in program.load():
        programs[plan.path].add(plan.program)
    assert {path: names for path, names in programs.items() if len(names) > 5} == {}
