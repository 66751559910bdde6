"""No training case names a real place: not a superuser's home, a package registry, or this machine."""

import re
import socket
from pathlib import Path

import pytest

from classifiers.data.labelled_cases import LabelledCase

# A build's own folder (/src/x.cc) says nothing of a place; a home or a registry does.
PLACES = re.compile(r"(?<!\w)/root\b|/work/|\bpypi\.org|pythonhosted|npmjs\.|crates\.io|repo\d?\.maven|deb\.debian")


def text_of(case: LabelledCase) -> str:
    """All texts of a case's streams and node events."""
    return "\n".join(
        [stream.text for stream in case.raw.streams]
        + [event.text for event in case.raw.node_events]
        + [case.labels.root_line or ""]
    )


@pytest.mark.parametrize("line", ["cd /root/x", "/work/a.py", "https://pypi.org/simple", "files.pythonhosted.org"])
def test_a_real_place_is_seen(line: str) -> None:
    assert PLACES.search(line)


@pytest.mark.slow
def test_no_case_names_a_real_place(packaged_cases: list[LabelledCase]) -> None:
    found = {(case.id, place[0]) for case in packaged_cases if (place := PLACES.search(text_of(case)))}
    assert not found


@pytest.mark.slow
def test_no_case_names_this_machine(packaged_cases: list[LabelledCase]) -> None:
    name = socket.gethostname()
    words = [str(Path(__file__).parents[3]) + "/"] + ([name] if len(name) > 5 else [])
    found = {(case.id, word) for case in packaged_cases for word in words if word in text_of(case)}
    assert not found
