import os
import pwd
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.errors import ConfigurationError
from service.logs.allowed_roots import LogRefused, parse_roots
from service.logs.local import JobOwner, LogNotFound, open_log, path_of

ME = pwd.getpwuid(os.getuid()).pw_name
ANOTHER = "daemon" if ME != "daemon" else "bin"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text("password=hunter2\n")
    return path


def read(
    path: Path | str, root: Path, user: str | None = ME, *, uid: int | None = None, any_owner: tuple[str, ...] = ()
) -> bytes:
    with open_log(str(path), parse_roots([str(root)], any_owner), JobOwner(user, uid)) as (file, size):
        data = file.read()
    assert size == len(data)
    return data


def refusal(path: Path | str, root: Path, user: str | None = ME, *, uid: int | None = None) -> str:
    with pytest.raises(LogRefused) as caught:
        read(path, root, user, uid=uid)
    return str(caught.value)


def test_a_regular_file_in_a_root_is_read(root: Path) -> None:
    (root / "a.log").write_text("text\n")
    assert read(root / "a.log", root) == b"text\n"
    assert read(root / "a.log", root, ME) == b"text\n"


@pytest.mark.parametrize("user", [None, "", "nobody-the-system-knows", "a\x00b"])
def test_a_file_is_not_read_if_the_jobs_user_cannot_be_established(root: Path, user: str | None) -> None:
    (root / "a.log").write_text("text\n")
    assert "cannot be established" in refusal(root / "a.log", root, user)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to somebody else")
def test_a_user_unknown_here_is_established_by_number(root: Path) -> None:
    log = root / "a.log"
    log.write_text("text\n")
    os.chown(log, 41_070, 41_070)
    assert read(log, root, "unknown-here", uid=41_070) == b"text\n"
    assert read(log, root, None, uid=41_070) == b"text\n"
    assert "does not belong" in refusal(log, root, None, uid=41_071)


@pytest.mark.parametrize("user", [None, "unknown-here", ANOTHER])
def test_a_number_does_not_make_a_user_root_or_somebody_else(root: Path, user: str | None) -> None:
    (root / "a.log").write_text("text\n")
    assert "do not agree" in refusal(root / "a.log", root, user, uid=0)
    assert "do not agree" in refusal(root / "a.log", root, ANOTHER, uid=41_070)


def test_a_root_of_any_owner_is_named_explicitly(root: Path) -> None:
    shared = root / "shared"
    shared.mkdir()
    for folder in (root, shared):
        (folder / "a.log").write_text("text\n")
    assert read(shared / "a.log", root, None, any_owner=(str(shared),)) == b"text\n"
    assert read(shared / "a.log", root, ANOTHER, any_owner=(str(shared),)) == b"text\n"
    with pytest.raises(LogRefused):
        read(root / "a.log", root, None, any_owner=(str(shared),))


@pytest.mark.parametrize("folder", ["/etc", "relative", ""])
def test_a_root_of_any_owner_lies_in_the_allow_list(root: Path, folder: str) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_LOG_ROOTS_ANY_OWNER"):
        parse_roots([str(root)], [folder])


def test_a_refusal_does_not_tell_which_files_exist_outside(root: Path, outside: Path) -> None:
    (root / "linked").symlink_to(outside.parent)
    (outside.parent / "closed").mkdir(mode=0)
    for folder in (outside.parent, root / "..", root / "linked", root / "linked" / ".." / outside.parent.name):
        there = refusal(folder / outside.name, root)
        assert there == "outside the places that logs may be read from"
        for other in ("absent.txt", "absent/a.txt", f"{outside.name}/a", "closed/a", "logs2", "x" * 300):
            assert refusal(folder / other, root) == there


def test_another_users_file_is_refused(root: Path) -> None:
    (root / "a.log").write_text("text\n")
    assert f"does not belong to the job's user {ANOTHER}" in refusal(root / "a.log", root, ANOTHER)


def test_a_symbolic_link_is_refused_wherever_it_leads(root: Path, outside: Path) -> None:
    (root / "out").symlink_to(outside)
    (root / "a.log").write_text("text\n")
    (root / "in").symlink_to("a.log")
    assert "symbolic link" in refusal(root / "out", root)
    assert "symbolic link" in refusal(root / "in", root)


def test_a_linked_directory_is_followed_only_to_where_reading_is_allowed(root: Path, outside: Path) -> None:
    (root / "out").symlink_to(outside.parent)
    (root / "real").mkdir()
    (root / "real" / "a.log").write_text("text\n")
    (root / "in").symlink_to("real")
    assert "outside" in refusal(root / "out" / outside.name, root)
    assert read(root / "in" / "a.log", root) == b"text\n"


def test_a_chain_of_links_that_the_system_does_not_follow_is_refused(root: Path, outside: Path) -> None:
    for number in range(2_000):
        (root / f"s{number}").symlink_to(f"s{number + 1}")
    (root / "s2000").symlink_to(outside.parent)
    assert refusal(root / "s0" / outside.name, root) == "more than 40 symbolic links"
    assert "outside" in refusal(root / "s1990" / outside.name, root)
    (root / "loop").symlink_to("loop")
    assert refusal(root / "loop" / "a.log", root) == "more than 40 symbolic links"


def test_an_address_that_no_system_takes_is_refused_before_it_is_read(root: Path) -> None:
    for address in (f"{root}{'/d/..' * 4_000}/a.log", f"file://{root}/{'%2e' * 8_000}"):
        with pytest.raises(LogRefused, match="more than 16,384 characters"):
            path_of(address)
        assert parse_roots([str(root)]).root_of(address) == ""


def test_steps_up_and_out_are_refused(root: Path, outside: Path) -> None:
    assert "outside" in refusal(f"{root}/../{outside.name}", root)


def test_a_hard_link_is_refused(root: Path, outside: Path) -> None:
    (root / "hard").hardlink_to(outside)
    assert "hard link" in refusal(root / "hard", root)


def test_a_fifo_is_refused_at_once(root: Path) -> None:
    os.mkfifo(root / "fifo")
    assert "a FIFO" in refusal(root / "fifo", root)


def test_directories_sockets_and_devices_are_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "a directory" in refusal(root, root)
    monkeypatch.chdir(root)  # a socket's name has to be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        assert "a socket" in refusal(root / "s", root)
    assert "a device" in refusal("/dev/zero", Path("/dev"))


def test_what_is_not_there_may_come(root: Path) -> None:
    for missing in (root / "none.log", root / "none" / "a.log"):
        with pytest.raises(LogNotFound):
            read(missing, root)


def test_an_endless_name_is_refused(root: Path) -> None:
    assert "can't be opened" in refusal(root / ("x" * 300), root)


@pytest.fixture
def unreadable(root: Path) -> Iterator[Path]:
    path = root / "a.log"
    path.write_text("text\n")
    path.chmod(0)
    os.chown(path, 2, 2)
    folder = root.parent.parent
    modes = [(parent, parent.stat().st_mode) for parent in (root, root.parent, folder, folder.parent)]
    for parent, mode in modes:
        parent.chmod(mode | 0o755)
    yield path
    for parent, mode in modes:
        parent.chmod(mode)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else for a moment")
def test_a_file_that_we_may_not_read_is_refused(unreadable: Path) -> None:
    os.seteuid(1)
    try:
        message = refusal(unreadable, unreadable.parent, pwd.getpwuid(2).pw_name)
    finally:
        os.seteuid(0)
    assert message == "permission denied"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("file:/a", "/a"),
        ("file://localhost/a", "/a"),
        ("FILE:///a%23", "/a#"),
    ],
)
def test_uris_of_files(uri: str, path: str) -> None:
    assert path_of(uri) == path


@pytest.mark.parametrize("uri", ["file://other/a", "file:a", "file:", "file:///a%00b", "/a\x00b"])
def test_what_is_no_path_of_this_machine_is_refused(uri: str) -> None:
    with pytest.raises(LogRefused):
        path_of(uri)
