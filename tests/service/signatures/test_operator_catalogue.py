import os
from pathlib import Path

import pytest

from classifiers import signatures
from classifiers.signatures import CatalogueError
from service.signatures.operator_catalogue import read
from tests.service.signatures.entries import LICENCE, QUOTA, write


def test_own_entries_are_layered_over_the_packaged_ones(tmp_path: Path) -> None:
    write(tmp_path, QUOTA)
    write(tmp_path / "team", LICENCE, name="licences.toml")
    write(tmp_path, "[[signature]]\nid = 5\n", name=".draft.toml")
    layered = read(tmp_path)
    assert set(layered.own) == {"site.scratch-quota", "site.licence-server"}
    assert len(layered.catalogue.entries) == len(signatures.packaged().entries) + 2
    quota = layered.own["site.scratch-quota"]
    assert (quota.side, quota.file, quota.replaces) == ("user", "site.toml", False)
    assert dict(quota.signature.causes) == {"USER.2": 1.0}
    assert quota.signature.strength == "decisive"


def test_a_side_without_a_cause_weighs_all_its_causes(tmp_path: Path) -> None:
    entry = read(write(tmp_path, LICENCE)).own["site.licence-server"]
    assert entry.side == "system"
    assert set(entry.signature.causes) == {f"SYS.{number}" for number in range(1, 7)}
    assert sum(entry.signature.causes.values()) == pytest.approx(1)


def test_an_entry_with_a_packaged_id_replaces_it(tmp_path: Path) -> None:
    packaged = signatures.packaged()
    layered = read(write(tmp_path, QUOTA.replace("site.scratch-quota", "python.module-not-found")))
    assert layered.own["python.module-not-found"].replaces
    assert len(layered.catalogue.entries) == len(packaged.entries)
    assert layered.catalogue.by_id["python.module-not-found"].title == "Quota of /scratch exceeded"


def test_a_packaged_entry_for_the_same_line_yields_to_the_own_one(tmp_path: Path) -> None:
    by_id = read(write(tmp_path, QUOTA)).catalogue.by_id
    assert signatures.packaged().by_id["cloud.provider-quota"].matches(by_id["site.scratch-quota"].examples[0])
    assert "site.scratch-quota" in by_id["cloud.provider-quota"].unless
    assert "site.scratch-quota" not in by_id["python.module-not-found"].unless


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("version = 1", "", "site.toml: version: this field is required (version = 1)"),
        ("version = 1", "version = 2", "site.toml: version: expected 1, got 2"),
        ('label = "Quota of /scratch exceeded"\n', "", "entry 1 (site.scratch-quota): label: this field is required"),
        ('action = "Delete old checkpoints', 'action = ""\n#', "action: expected a text"),
        ("near_misses = [", "# [", "near_misses: this field is required"),
        ('side = "user"', 'side = "network"', "side: expected one of hardware, system, user, got 'network'"),
        ('side = "user"', 'side = "system"', "side: 'system' is not the side of USER.2"),
        ('side = "user"\ncause = "USER.2"\n', "", "cause: this field or side is required"),
        ('cause = "USER.2"', 'cause = "USER.99"', "cause: 'USER.99' is not a code of that axis"),
        ('cause = "USER.2"', 'cause = { "USER.2" = nan }', "the weight of USER.2 must be a number above 0, got nan"),
        ('["scratch: quota exceeded"]', '["Größe überschritten"]', "literals: expected ASCII"),
        ('role = "initiating"', 'role = "first"', "role: expected one of initiating, cascade, teardown, context"),
        ('"scratch: quota exceeded for', '"scratch: quota was exceeded for', "examples: example 1 does not match"),
        ('"scratch: quota checked', '"scratch: quota exceeded, checked', "near_misses: near miss 1 matches the entry"),
        ('role = "initiating"', 'role = "initiating"\npattern = "(?=x)"', "look-around and back-references"),
        ('role = "initiating"', f'role = "initiating"\npattern = "{"x" * 2000}"', "pattern: expected at most 1,000"),
        ('role = "initiating"', 'role = "initiating"\nneeds = ["site.none"]', "needs/unless names 'site.none'"),
        ('role = "initiating"', 'role = "initiating"\ntitle = "x"', "unknown field 'title'"),
        ('id = "site.scratch-quota"', 'id = "Scratch Quota"', "id: expected a family, a dot and a name"),
        ("[[signature]]", "[[signature]", "site.toml: not TOML"),
        ("[[signature]]", "[[signatures]]", "unknown field 'signatures'"),
    ],
)
def test_a_wrong_file_is_named_with_entry_and_field(tmp_path: Path, before: str, after: str, message: str) -> None:
    write(tmp_path, QUOTA)
    file = tmp_path / "site.toml"
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(CatalogueError) as raised:
        read(tmp_path)
    assert message in str(raised.value)
    assert "site.toml" in str(raised.value)


def test_a_file_in_another_encoding_is_named_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_bytes("version = 1 # Größe".encode("latin-1"))
    with pytest.raises(CatalogueError, match=r"^site\.toml: not TOML: not UTF-8 \(at byte 17\)$"):
        read(tmp_path)


def test_an_id_is_used_once(tmp_path: Path) -> None:
    write(tmp_path, QUOTA)
    write(tmp_path, QUOTA, name="storage.toml")
    with pytest.raises(CatalogueError, match=r"storage\.toml: entry 1 \(site\.scratch-quota\): id: used in site\.toml"):
        read(tmp_path)


def test_what_is_no_regular_file_or_has_no_end_is_named(tmp_path: Path) -> None:
    """A FIFO held up the start, and later the diagnosis of every failure; a device was read without an end."""
    named = tmp_path / "quota.toml"
    named.symlink_to("/dev/zero")
    with pytest.raises(CatalogueError, match=r"quota.toml: not a regular file"):
        read(tmp_path)
    named.unlink()
    os.mkfifo(named)
    with pytest.raises(CatalogueError, match=r"quota.toml: not a regular file"):
        read(tmp_path)
    named.unlink()
    with named.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(CatalogueError, match=r"quota.toml: expected at most"):
        read(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="nowhere: no such folder"):
        read(tmp_path / "nowhere")
