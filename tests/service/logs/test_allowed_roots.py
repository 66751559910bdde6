from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import ConfigurationError
from service.logs.allowed_roots import LogRefused, parse_roots


@pytest.mark.parametrize(
    "root",
    [
        *("logs", "", "file:relative", "https:///x", "https://u:p@h/x", "s3://b/../c", "c:\\logs"),
        *("/", "//", "/tmp/..", "file:///", "/proc", "/proc/self/root", "/sys/kernel"),
    ],
)
def test_a_root_that_is_none_stops_the_start_with_the_reason(root: str) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_LOG_ROOTS"):
        parse_roots([root])


def test_a_root_reached_by_a_link_is_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    roots = parse_roots([str(tmp_path / "link")])
    roots.check_path(str(tmp_path / "real" / "a.log"))
    with pytest.raises(LogRefused):
        roots.check_path(str(tmp_path / "beside" / "a.log"))


@pytest.mark.parametrize(
    ("root", "path", "allowed"),
    [
        ("/scratch", "/scratch/a", True),
        ("/scratch/", "/scratch/b/c", True),
        ("file:///scratch", "/scratch/a", True),
        ("file:///with%20space", "/with space/a", True),
        ("/scratch", "/scratchy/a", False),
        ("/scratch", "/etc/passwd", False),
        ("/scratch", "/proc/self/environ", False),
        ("/dev/shm", "/dev/shm/a.log", True),
    ],
)
def test_only_files_below_a_root_are_read(root: str, path: str, allowed: bool) -> None:
    roots = parse_roots([root])
    if allowed:
        roots.check_path(path)
    else:
        with pytest.raises(LogRefused):
            roots.check_path(path)


@pytest.mark.parametrize(
    ("root", "url", "allowed"),
    [
        ("https://logs.example/runs", "https://logs.example/runs/1.log", True),
        ("https://logs.example/runs", "HTTPS://LOGS.example:443/runs/1.log?sig=x", True),
        ("https://logs.example", "https://logs.example/any/where", True),
        ("https://logs.example/runs", "https://logs.example/runs", False),
        ("https://logs.example/runs", "https://logs.example/runs-private/1", False),
        ("https://logs.example/runs", "http://logs.example/runs/1", False),
        ("https://logs.example/runs", "https://logs.example:8443/runs/1", False),
        ("https://logs.example/runs", "https://logs.example.evil/runs/1", False),
        ("https://logs.example/runs", "https://logs.example@evil/runs/1", False),
        ("https://logs.example/runs", "https://evil/https://logs.example/runs/1", False),
        ("https://logs.example/runs", "https://logs.example/runs/../etc", False),
        ("https://logs.example/runs", "https://logs.example/runs/%2e%2e/etc", False),
        ("https://logs.example/runs", "https://logs.example/runs/%252e%252e/etc", False),
        ("https://logs.example/runs", "https://logs.example/runs/100%25", True),
        ("https://logs.example/runs", f"https://logs.example/runs/%{'25' * 3}20a", True),
        ("https://logs.example/runs", f"https://logs.example/runs/%{'25' * 6}20a", False),
        ("https://logs.example/runs", f"https://logs.example/runs/{'a' * 20_000}", False),
        ("https://logs.example/runs", "https://logs.example/runs/..%5cetc", False),
        ("https://logs.example/runs", "https://logs.example\\@evil/runs/1", False),
        ("https://logs.example/runs", "https://logs.example:x/runs/1", False),
        ("s3://bucket/p", "s3://bucket/p/1.log", True),
        ("s3://bucket/p", "s3://other/p/1.log", False),
        ("s3://bucket/p", "simplecache::s3://bucket/p/1.log", False),
        ("/scratch", "s3://bucket/p/1.log", False),
    ],
)
def test_only_addresses_below_a_root_are_read(root: str, url: str, allowed: bool) -> None:
    roots = parse_roots([root])
    if allowed:
        roots.check_url(url)
    else:
        with pytest.raises(LogRefused):
            roots.check_url(url)


def test_without_roots_nothing_is_read_and_the_reason_names_the_setting() -> None:
    with pytest.raises(LogRefused, match="FAULTLINE_LOG_ROOTS"):
        parse_roots([]).check_path("/scratch/a")


@given(st.text(max_size=60))
def test_any_text_is_allowed_or_refused(rest: str) -> None:
    try:
        parse_roots(["https://logs.example/runs"]).check_url("https://logs.example/" + rest)
    except LogRefused:
        return
    assert "runs" in rest
