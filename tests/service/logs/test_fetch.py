import errno
import os
import pwd
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from service.contracts.event import JobCompletion, from_object
from service.logs.excerpt import SCAN_BYTES, TAIL_BYTES, Excerpt
from service.logs.fetch import FetchedLogs, LogFetcher
from tests.service.http_server import listening

ME = pwd.getpwuid(os.getuid()).pw_name


def job(*logs: dict[str, Any], user: str | None = ME) -> JobCompletion:
    ended = "2026-11-20T10:00:00Z"
    return from_object(
        {"cluster": "c", "job_id": "1", "status": "failed", "ended_at": ended, "user": user, "logs": list(logs)}
    )


@pytest.fixture
def fetcher(tmp_path: Path) -> Iterator[LogFetcher]:
    made = LogFetcher([str(tmp_path)])
    yield made
    made.close()


def one(fetcher: LogFetcher, *logs: dict[str, Any], user: str | None = ME) -> FetchedLogs:
    [fetched] = fetcher.fetch_all([job(*logs, user=user)], 60)
    return fetched


def test_inline_tails_keep_rank_node_and_stream_and_lose_their_secrets(fetcher: LogFetcher) -> None:
    found = one(
        fetcher,
        {"rank": 3, "node": "n1", "stream": "stdout", "tail": "\x1b[31mAPI_KEY=sk-abcdefghijklmnopqrstuvwx1\x1b[0m\n"},
        {"tail": "plain"},
    )
    first, second = found.streams
    assert (first.rank, first.node, first.stream, first.first_line) == (3, "n1", "stdout", 1)
    assert "sk-abc" not in first.text
    assert first.text.startswith("API_KEY=[redacted]")
    assert (second.rank, second.stream, second.text, second.missing) == (None, "stderr", "plain", None)
    assert not found.pending


def test_a_file_is_read_by_its_uri(fetcher: LogFetcher, tmp_path: Path) -> None:
    path = tmp_path / "a log #1.out"
    path.write_bytes(b"one\r\ntwo\xff\n")
    for uri in (str(path), path.as_uri()):
        [stream] = one(fetcher, {"uri": uri, "rank": 0}, user=ME).streams
        assert (stream.text, stream.rank, stream.first_line, stream.missing) == ("one\ntwo\ufffd\n", 0, 1, None)


def test_each_event_gets_its_own_logs_in_order(fetcher: LogFetcher, tmp_path: Path) -> None:
    events = []
    for number in range(40):
        (tmp_path / f"{number}.log").write_text(f"log {number}\n")
        events.append(job({"tail": f"tail {number}"}, {"uri": f"{tmp_path}/{number}.log"}))
    for number, fetched in enumerate(fetcher.fetch_all(events, 60)):
        assert [stream.text for stream in fetched.streams] == [f"tail {number}", f"log {number}\n"]
    assert fetcher.fetch_all([], 10) == []


def test_what_may_not_be_read_says_why_and_is_not_tried_again(fetcher: LogFetcher, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "mine").write_text("secret of mine")
    found = one(
        fetcher,
        {"uri": f"{tmp_path}/link"},
        {"uri": f"{tmp_path}/fifo"},
        {"uri": f"{tmp_path}/mine"},
        {"uri": "/etc/passwd"},
        {"uri": "https://evil.example/x?token=abc"},
        {"uri": "not a uri"},
        {"missing": "the path depends on %r"},
        {},
        user="daemon",
    )
    reasons = [stream.missing or "" for stream in found.streams]
    expected = ["symbolic link", "FIFO", "does not belong", "outside", "scheme 'https'", "scheme ''", "%r", "neither"]
    for reason, words in zip(reasons, expected, strict=True):
        assert words in reason
    assert "abc" not in reasons[4]
    assert all(stream.text == "" and stream.first_line is None for stream in found.streams)
    assert not found.pending


def test_a_log_that_is_not_there_yet_is_worth_a_later_try(fetcher: LogFetcher, tmp_path: Path) -> None:
    found = one(fetcher, {"uri": f"{tmp_path}/late.log", "rank": 1})
    assert "no such file" in (found.streams[0].missing or "")
    [ref] = found.pending
    assert ref.rank == 1
    (tmp_path / "late.log").write_text("came\n")
    later = fetcher.fetch_all([job().model_copy(update={"logs": found.pending})], 60)[0]
    assert later.streams[0].text == "came\n"
    assert not later.pending


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_log_of_a_server_that_fails_for_a_moment_is_worth_a_later_try(status: int) -> None:
    answers = iter([status] * 4)

    class Restarting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if (failed := next(answers, None)) is not None:
                self.send_error(failed)
                return
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"came\n" if self.command == "GET" else b"")

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    with listening(ThreadingHTTPServer(("127.0.0.1", 0), Restarting)) as address:
        fetcher = LogFetcher([f"{address}/logs"])
        found = one(fetcher, {"uri": f"{address}/logs/a.log"})
        while found.streams[0].text == "" and found.pending:
            found = fetcher.fetch_all([job().model_copy(update={"logs": found.pending})], 60)[0]
        fetcher.close()
    assert found.streams[0].text == "came\n"


def test_a_log_whose_mount_is_renewed_is_worth_a_later_try(
    fetcher: LogFetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.log").write_text("came\n")

    def stale(*_args: Any, **_options: Any) -> int:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patched:
        patched.setattr("service.logs.local.os.open", stale)
        found = one(fetcher, {"uri": f"{tmp_path}/a.log"})
    assert found.streams[0].text == ""
    later = fetcher.fetch_all([job().model_copy(update={"logs": found.pending})], 60)[0]
    assert later.streams[0].text == "came\n"


def test_a_key_that_is_removed_moves_no_line_behind_it(fetcher: LogFetcher) -> None:
    body = "\n".join(["MIIEowIBAAKCAQEA7" + "bX4" * 15] * 25)
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
    [stream] = one(fetcher, {"tail": f"step 1\n{key}KeyError: 'y'\n"}).streams
    assert "MIIE" not in stream.text
    assert stream.text.split("\n").index("KeyError: 'y'") == 28  # as in the file


def test_a_large_log_gives_its_end_and_the_window_around_its_first_error(fetcher: LogFetcher, tmp_path: Path) -> None:
    with (tmp_path / "a.log").open("wb") as file:
        for number in range(1, 200_001):
            file.write(b"Segmentation fault\n" if number == 1_000 else b"step %d of many, loss 0.1\n" % number)
    [stream] = one(fetcher, {"uri": f"{tmp_path}/a.log"}).streams
    assert len(stream.text) <= TAIL_BYTES + TAIL_BYTES // 8
    (begin, first), (end, last) = stream.windows
    assert begin == 0
    assert first == stream.first_line
    around, tail = stream.text[:end].split("\n"), stream.text[end:].split("\n")
    assert first is not None
    assert around[1_000 - first] == "Segmentation fault"
    assert last is not None
    assert tail[0].startswith(f"step {last} ")
    assert tail[-2].startswith("step 200000 ")


def test_of_a_log_beyond_what_is_scanned_the_end_counts(fetcher: LogFetcher, tmp_path: Path) -> None:
    with (tmp_path / "a.log").open("wb") as file:
        file.write(b"Segmentation fault long ago\n")
        file.truncate(SCAN_BYTES + 10_000_000)  # a hole of null bytes
        file.seek(0, os.SEEK_END)
        file.write(b"\nBus error\nlast line\n")
    used = time.process_time()
    [stream] = one(fetcher, {"uri": f"{tmp_path}/a.log"}).streams
    assert stream.text == "\nBus error\nlast line\n"
    assert "long ago" not in stream.text
    assert stream.first_line is None
    assert time.process_time() - used < 5


def test_a_single_line_of_fifty_megabytes(fetcher: LogFetcher, tmp_path: Path) -> None:
    with (tmp_path / "a.log").open("wb") as file:
        for _ in range(50):
            file.write(b"x" * 1024 * 1024)
        file.write(b" the end")
    [stream] = one(fetcher, {"uri": f"{tmp_path}/a.log"}).streams
    assert stream.text.endswith("x the end")
    assert len(stream.text) <= TAIL_BYTES
    assert stream.first_line == 1


def test_an_inline_tail_is_bounded_like_a_file(fetcher: LogFetcher) -> None:
    [stream] = one(fetcher, {"tail": "line\n" * 500_000}).streams
    assert len(stream.text) <= TAIL_BYTES


def test_a_secret_that_the_cut_splits_is_not_shown(fetcher: LogFetcher) -> None:
    secret = "ghp_" + "Zq9" * 12
    for shift in range(0, 60, 7):
        line = "y " * 40_000 + f"token {secret} "
        tail = line + "y " * (TAIL_BYTES // 2 - len(secret) // 2 + shift)
        [stream] = one(fetcher, {"tail": tail[: len(tail) // 2 * 2]}).streams
        assert "Zq9" not in stream.text


def test_a_log_whose_reading_fails_takes_no_other_log_away(
    fetcher: LogFetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Excerpt.feed

    def fail_once(excerpt: Excerpt, piece: bytes) -> None:
        if piece == b"odd":
            raise RecursionError
        feed(excerpt, piece)

    monkeypatch.setattr(Excerpt, "feed", fail_once)
    (tmp_path / "odd.log").write_text("odd")
    (tmp_path / "a.log").write_text("text\n")
    odd, plain = {"uri": f"{tmp_path}/odd.log"}, {"uri": f"{tmp_path}/a.log"}
    found = one(fetcher, *[odd] * 40, plain)
    assert found.streams[0].missing == f"{tmp_path}/odd.log: could not be read (RecursionError)"
    assert found.streams[-1].text == "text\n"
    assert not found.pending


def test_a_log_that_shrinks_or_vanishes_while_it_is_read_is_no_accident(
    fetcher: LogFetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"line\n" * 1_000_000)
    pieces = []
    feed = Excerpt.feed

    def feed_and_cut(self: Excerpt, piece: bytes) -> None:
        pieces.append(len(piece))
        if len(pieces) == 1:
            os.truncate(path, 10)
            path.unlink()
        feed(self, piece)

    monkeypatch.setattr(Excerpt, "feed", feed_and_cut)
    [stream] = one(fetcher, {"uri": str(path)}).streams
    assert stream.missing is None
    assert stream.text.startswith("line\n")
    assert len(pieces) == 1


def test_a_log_that_grows_is_read_up_to_where_it_was(
    fetcher: LogFetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"early\n")
    feed = Excerpt.feed

    def feed_and_grow(self: Excerpt, piece: bytes) -> None:
        with path.open("ab") as file:
            file.write(b"later\n" * 1000)
        feed(self, piece)

    monkeypatch.setattr(Excerpt, "feed", feed_and_grow)
    assert one(fetcher, {"uri": str(path)}).streams[0].text == "early\n"


def test_logs_that_are_late_are_pending_and_delay_no_other_job(tmp_path: Path) -> None:
    release = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            release.wait(60)

        def do_HEAD(self) -> None:
            release.wait(60)

    (tmp_path / "quick.log").write_text("quick\n")
    with listening(ThreadingHTTPServer(("127.0.0.1", 0), Slow)) as address:
        fetcher = LogFetcher([str(tmp_path), f"{address}/logs"])
        try:
            events = [job({"uri": f"{address}/logs/slow.log"}), job({"uri": f"{tmp_path}/quick.log"})]
            started = time.monotonic()
            late, quick = fetcher.fetch_all(events, 2.0)
            assert time.monotonic() - started < 30  # the slow one takes 60
        finally:
            release.set()
            fetcher.close()
    assert quick.streams[0].text == "quick\n"
    assert late.streams[0].missing == f"{address}/logs/slow.log: not arrived within 2 s"
    assert [ref.uri for ref in late.pending] == [f"{address}/logs/slow.log"]


def test_a_job_of_very_many_ranks_has_shorter_ends(fetcher: LogFetcher) -> None:
    tail = "line of a rank\n" * 10_000
    [found] = fetcher.fetch_all([job(*({"rank": rank, "tail": tail} for rank in range(512)))], 60)
    assert len(found.streams) == 512
    assert sum(len(stream.text) for stream in found.streams) <= 20 * 1024 * 1024
    assert all(stream.text for stream in found.streams)
