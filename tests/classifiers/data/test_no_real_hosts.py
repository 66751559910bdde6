"""No training case names a real place: not a superuser's home, an index of packages, or this machine."""

import re
import socket
from pathlib import Path

import pytest

from classifiers.data.labelled_cases import LabelledCase

pytestmark = pytest.mark.xdist_group("training cases")  # composed once for all files of the group

# A build's own folder (/src/x.cc) says nothing of a place; a home or an index of packages does.
_MADE = r"(?![\w.-]*\.(?:example|internal)\b)"
PLACES = re.compile(
    rf"(?<!\w)/root\b|https?://{_MADE}[\w.-]+/(?:simple|packages|debian|maven2?)\b"
    rf"|\bregistry\.{_MADE}[\w-]+\.\w+|\bUpdating {_MADE}[\w.-]+\.\w+ index"
)


_PARTS = ("/root", "://", "registry.", "Updating ")  # each place has one of them


def names_a_place(text: str) -> re.Match[str] | None:
    """The first place in a text; most have none of the parts, which are found much faster than the pattern."""
    return PLACES.search(text) if any(part in text for part in _PARTS) else None


def text_of(case: LabelledCase) -> str:
    """All texts of a case's streams and node events."""
    return "\n".join(
        [stream.text for stream in case.raw.streams]
        + [event.text for event in case.raw.node_events]
        + [case.labels.root_line or ""]
    )


@pytest.mark.parametrize("line", ["cd /root/x", "https://any.place/simple", "GET registry.any.place"])
def test_a_real_place_is_seen(line: str) -> None:
    assert names_a_place(line)


@pytest.mark.slow
def test_no_case_names_a_real_place(packaged_cases: list[LabelledCase]) -> None:
    found = {(case.id, place[0]) for case in packaged_cases if (place := names_a_place(text_of(case)))}
    assert not found


@pytest.mark.slow
def test_no_case_names_this_machine(packaged_cases: list[LabelledCase]) -> None:
    name = socket.gethostname()
    words = [str(Path(__file__).parents[3]) + "/"] + ([name] if len(name) > 5 else [])
    found = {(case.id, word) for case in packaged_cases for word in words if word in text_of(case)}
    assert not found
