"""The corpus tells of no real place: not of a superuser's home, of a package registry, or of this machine."""

import re
import socket
from pathlib import Path

import pytest

from classifiers.composition import training_cases
from classifiers.data.labelled_cases import LabelledCase

# A build's own folder (/src/x.cc) says nothing of a place; a home or a registry does.
PLACES = re.compile(r"(?<!\w)/root\b|/work/|\bpypi\.org|pythonhosted|npmjs\.|crates\.io|repo\d?\.maven|deb\.debian")


def told(case: LabelledCase) -> str:
    """All that a case's streams and nodes say."""
    return "\n".join(
        [stream.text for stream in case.raw.streams]
        + [event.text for event in case.raw.node_events]
        + [case.labels.root_line or ""]
    )


@pytest.mark.parametrize("line", ["cd /root/x", "/work/a.py", "https://pypi.org/simple", "files.pythonhosted.org"])
def test_a_real_place_is_seen(line: str) -> None:
    assert PLACES.search(line)


@pytest.mark.slow
def test_no_case_tells_of_a_real_place() -> None:
    found = {(case.id, place[0]) for case in training_cases.packaged() if (place := PLACES.search(told(case)))}
    assert not found


@pytest.mark.slow
def test_no_case_tells_of_this_machine() -> None:
    name = socket.gethostname()
    words = [str(Path(__file__).parents[3]) + "/"] + ([name] if len(name) > 5 else [])
    found = {(case.id, word) for case in training_cases.packaged() for word in words if word in told(case)}
    assert not found
