"""Exports open in a spreadsheet without running anything, whatever its separator is."""

import csv
import io
from itertools import product
from pathlib import Path

import pytest

from tests.service.web.world import event, lines, log, make_world

BEFORE = ("", " ", "\ufeff", "a;", "a; ", "a;'", 'a;"', "a\t", "a\r\n", ";;")
SIGNS = "=+-@\uff1d"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_no_cell_is_a_formula(tmp_path: Path, separator: str) -> None:
    world = make_world(tmp_path)
    users = [f"{before}{sign}WEBSERVICE(1)" for before, sign in product(BEFORE, SIGNS)]
    with world.client() as client:
        sent = [event(str(number), user=user, name="a;=WEBSERVICE(2)") for number, user in enumerate(users, 1)]
        assert client.post("/api/v1/events", content=lines(*sent)).json()["accepted"] == len(sent)
        text = client.get("/api/v1/failures/export.csv").text
    world.store.close()
    cells = [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for cell in row]
    assert sum("WEBSERVICE(1)" in cell for cell in cells) == len(users)
    assert [cell for cell in cells if cell.lstrip(' \ufeff"').startswith(tuple(SIGNS)) and "WEB" in cell] == []


def test_what_is_printed_to_a_terminal_has_no_commands_for_it(tmp_path: Path) -> None:
    """Such as `curl ... | less -r`; in JSON, they are a matter of the program that reads it."""
    commands = "\x1b]0;title\x07 \x9b31m \u202egnp.exe\u2066"
    world = make_world(tmp_path)
    with world.client() as client:
        sent = event("1", message=commands, user=f"ana{commands}", logs=[log(f"NVRM: Xid 79 {commands}\n")])
        assert client.post("/api/v1/events", content=lines(sent)).json()["accepted"] == 1
        for path in ("/api/v1/failures/export.csv", "/failures/1/logs/1/0"):
            text = client.get(path).text
            assert "gnp.exe" in text
            assert not [one for one in text if not one.isprintable() and one not in "\r\n"], path
    world.store.close()
