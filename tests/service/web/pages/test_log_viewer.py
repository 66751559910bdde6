"""The log viewer: links to lines, evidence, search, and pages of long logs."""

import gzip
import re
from html import unescape
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from service.failures.records import AttemptLogs
from service.web import views
from service.web.pages.failure import log_viewer
from service.web.pages.failure.log_viewer import StreamLines
from tests.service.web.world import World, event, lines, log

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."


@pytest.fixture
def address(client: TestClient, world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the viewer of a log of twelve lines, shown in pages of five lines."""
    monkeypatch.setattr(log_viewer, "PAGE", 5)
    text = "\n".join([*(f"step {number}" for number in range(1, 11)), "[10] done?", XID])
    assert client.post("/api/v1/events", content=lines(event("1", logs=[log(text, 3)]))).json()["accepted"] == 1
    found = client.get("/api/v1/failures").json()["items"][0]["id"]
    kept: AttemptLogs = views.failure(world.services, found).logs[0]
    return f"/failures/{found}/logs/{kept.attempt_id}/0/lines"


def shown(page: str) -> list[int]:
    return [int(number) for number in re.findall(r'<tr id="L(\d+)"', page)]


def test_a_link_to_a_line_opens_the_page_that_has_it(client: TestClient, address: str) -> None:
    assert shown(client.get(address).text) == [1, 2, 3, 4, 5]
    page = client.get(f"{address}?line=7").text
    assert shown(page) == [6, 7, 8, 9, 10]
    assert '<a href="?line=7#L7">7</a>' in page
    assert '<a href="?line=7&amp;wrap=no#L7">7</a>' in client.get(f"{address}?line=7&wrap=no").text
    assert shown(client.get(f"{address}?line=99").text) == [11, 12]


def test_pages_and_evidence_are_links_that_need_no_script(client: TestClient, address: str) -> None:
    page = client.get(f"{address}?line=7").text
    assert f'rel="prev" href="{address}?line=1"' in page
    assert f'rel="next" href="{address}?line=11"' in page
    assert f'{address}?line=12#L12"' in page.partition('class="jumps"')[2].partition("</p>")[0]
    assert f"{address[: -len('/lines')]}/lines" in client.get(address[: address.index("/logs")]).text


def test_the_way_back_stands_above_the_title(client: TestClient, address: str) -> None:
    page = client.get(address).text.partition("<main")[2]
    assert page.index('<a href="/failures">Failures</a> /') < page.index("<h1>")


def test_the_search_lists_the_lines_that_contain_the_text(client: TestClient, address: str) -> None:
    page = client.get(address, params={"q": "STEP 1"}).text
    assert "2 lines contain" in page
    assert f"{address}?line=10#L10" in page
    assert "1 line contains" in client.get(address, params={"q": "[10]"}).text
    assert "0 lines contain" in client.get(address, params={"q": "<b>"}).text


def test_no_such_stream_is_not_found(client: TestClient, address: str) -> None:
    assert client.get(address.replace("/0/lines", "/9/lines")).status_code == 404
    assert client.get(address.replace("/0/lines", "/9/lines.json")).status_code == 404


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_the_script_gets_all_lines_with_their_numbers_and_roles_as_the_pages_show_them(
    client: TestClient, address: str, encoding: str
) -> None:
    answer = client.get(f"{address}.json", headers={"Accept-Encoding": encoding})
    assert answer.headers.get("content-encoding", "identity") == encoding
    sent = answer.json()
    texts, at = sent["text"].split("\n"), address
    assert sent["numbers"] == [[0, 1]]
    [role] = sent["roles"]
    while at:
        page = client.get(at).text
        rows = re.findall(r'<tr id="L(\d+)"(?: class="(\w+)")?>.*?<code>(.*?)</code>', page)
        assert rows
        for number, given, text in rows:
            assert texts[int(number) - 1] == unescape(text)
            assert (role[:2] == [int(number) - 1, given]) == bool(given)
        later = re.search(r'rel="next" href="([^"]+)"', page)
        at = later[1] if later else ""
    assert f'aria-hidden="true">{role[2]}</span> {role[1]}</span>' in page
    assert len(texts) == 12


def test_lines_for_the_script_have_no_invisible_characters_and_keep_the_numbers_of_the_file() -> None:
    lines = StreamLines(["\x1b[31mred\u202e", "a" * 5_000, "end"], [1, 2, 900], {})
    sent = log_viewer.wire(lines)
    assert sent["text"] == f"red[U+202E]\n{'a' * log_viewer.LONGEST} … 1,000 more characters\nend"
    assert sent["numbers"] == [[0, 1], [2, 900]]


def test_a_log_of_long_lines_has_shorter_pages_and_none_of_its_lines_is_left_out(
    client: TestClient, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_viewer, "PAGE_BYTES", 20)  # two lines "step 1", but not the third
    at: str | None = address
    pages = []
    while at is not None:
        page = client.get(at).text
        pages.append(shown(page))
        assert f"{pages[-1][0]} to {pages[-1][-1]} of 12" in page
        later = re.search(r'rel="next" href="([^"]+)"', page)
        at = later and later[1]
    assert [number for one in pages for number in one] == list(range(1, 13))
    assert max(map(len, pages)) < 5
    back = [re.search(r'rel="prev" href="([^"]+)"', client.get(f"{address}?line={one[0]}").text) for one in pages]
    assert back[0] is None
    assert [shown(client.get(one[1]).text) for one in back[1:] if one is not None] == pages[:-1]
    for number in range(1, 13):
        assert number in shown(client.get(f"{address}?line={number}").text)


@pytest.mark.parametrize("character", ["x", "'", "\u202e", "\x9f", "é"])
def test_no_page_of_a_log_is_heavier_than_400_kb_with_styles_and_scripts(
    client: TestClient, world: World, character: str
) -> None:
    """Pages are not compressed, and some characters take many bytes of a page: a log of them has shorter pages."""
    text = "\n".join([character * (240 // len(character.encode()))] * 1_000)
    assert client.post("/api/v1/events", content=lines(event("1", logs=[log(text, 3)]))).json()["accepted"] == 1
    found = client.get("/api/v1/failures").json()["items"][0]["id"]
    kept: AttemptLogs = views.failure(world.services, found).logs[0]
    viewer = f"/failures/{found}/logs/{kept.attempt_id}/0/lines"
    for address in (viewer, f"{viewer}?line=500", f"{viewer}?q={quote(character)}"):
        page = client.get(address)
        assert shown(page.text)
        files = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
        assert files
        sent = [page.content, *(client.get(file).content for file in files)]
        compressed = [len(gzip.compress(content, 6)) for content in sent[1:]]
        assert len(sent[0]) + sum(compressed) < 400_000


def test_a_line_that_is_cut_says_how_much_is_missing(client: TestClient) -> None:
    text = f"start\n{'=' * 5_000}{XID}"
    assert client.post("/api/v1/events", content=lines(event("1", logs=[log(text, 3)]))).json()["accepted"] == 1
    found = client.get("/api/v1/failures").json()["items"][0]["id"]
    page = client.get(f"/failures/{found}").text
    address = re.search(r'"(/failures/\d+/logs/\d+/0/lines)', page)
    assert address is not None
    missing = 5_000 + len(XID) - log_viewer.LONGEST
    assert f"= … {missing:,} more characters</code>" in client.get(address[1]).text
    searched = client.get(f"{address[1]}?q=Xid").text
    assert "1 line contains" in searched
    assert f"= … {5_000 + len(XID) - 400:,} more characters</code>" in searched
