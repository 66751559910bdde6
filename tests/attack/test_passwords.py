"""Guessing passwords: bounded work, limits that count before the work, and no lock-out of others."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pyotp
import pytest
from fastapi.testclient import TestClient

from service.errors import InvalidInput, Unavailable
from service.people import one_time_codes, passwords
from service.people.login_limits import LoginAttempts
from service.people.login_methods import LoginMethods
from service.web.sessions import COOKIE, FORM_COOKIE, HOST_PREFIX, IDLE
from tests.service.web.access.test_auth import form_token, log_in
from tests.service.web.world import World, make_world

PASSWORD = "five random words 81 tulip"
HTTPS = "https://faultline.example"


@pytest.fixture
def world(new_database: Callable[[], str], tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path, new_database(), host="0.0.0.0")
    with made.store.unit_of_work() as work:
        work.accounts.create("ana", "viewer", password=passwords.hash_password(PASSWORD))
    yield made
    made.store.close()


def enter(client: TestClient, password: str = PASSWORD, code: str = "", name: str = "ana") -> int:
    form = {"name": name, "password": password, "code": code, "form_token": form_token(client)}
    return client.post("/login", data=form).status_code


def test_few_passwords_are_hashed_at_once_and_few_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, gate = 0, 0, threading.Event()

    class Slow:
        def verify(self, stored: str, password: str) -> bool:
            nonlocal running, most
            running += 1
            most = max(most, running)
            gate.wait(60)
            running -= 1
            return stored == password

    monkeypatch.setattr(passwords, "_hasher", Slow)
    with ThreadPoolExecutor(60) as pool:
        made = [pool.submit(passwords.verify, "x", "x") for _ in range(60)]
        refused = [one for one in made if isinstance(_early(one), Unavailable)]
        gate.set()
    assert most <= passwords.HASHES <= 4
    assert len(refused) == 60 - passwords.HASHES - passwords.WAITING


def _early(future: Future[bool]) -> BaseException | None:
    try:
        return future.exception(timeout=0.2)
    except TimeoutError:
        return None


def test_attempts_count_before_the_work_and_good_ones_do_not(world: World) -> None:
    """Parallel guesses can't pass the limit while the first ones are still being checked."""
    attempts = LoginAttempts(world.store)
    started = [attempts.start("192.0.2.1", "ana") for _ in range(15)]
    running = [one for one in started if one is not None]
    assert len(running) == 10
    for one in running:
        attempts.finish(one, succeeded=True)
    assert attempts.start("192.0.2.1", "ana") is not None
    with world.client() as client:
        assert [enter(client, "wrong") for _ in range(11)] == [401] * 10 + [429]
        assert enter(client) == 429


def test_guesses_do_not_lock_others_out(world: World) -> None:
    attempts = LoginAttempts(world.store)

    def guess(address: str, name: str, times: int = 1, *, succeeded: bool = False) -> int:
        done = 0
        for _ in range(times):
            one = attempts.start(address, name)
            if one is not None:
                attempts.finish(one, succeeded=succeeded)
                done += 1
        return done

    assert guess("192.0.2.1", "ana", succeeded=True) == 1
    # From many addresses at one name, and from one address (such as that of a proxy) at many names:
    assert sum(guess(f"198.51.100.{number}", "ana", 10) for number in range(20)) == 30
    assert sum(guess("192.0.2.1", f"name {number}") for number in range(100)) == 20
    assert guess("192.0.2.1", "ana", succeeded=True) == 1
    # A client with a whole IPv6 network is one client.
    assert sum(guess(f"2001:db8::{number:x}", f"x{number}") for number in range(100)) == 20
    assert guess("2001:db8:0:1::1", "y") == 1


def test_processes_that_share_a_database_share_the_limits(world: World) -> None:
    """Eight processes behind one address allowed eight times the guesses of passwords and one-time codes."""
    processes = [LoginAttempts(world.store) for _ in range(8)]

    def tries(address: str, name: str, times: int, *, wrong_code: bool = False) -> int:
        done = 0
        for number in range(times):
            attempts = processes[number % len(processes)]
            one = attempts.start(address, name)
            if one is not None:
                attempts.finish(one, succeeded=False, wrong_code=wrong_code)
                done += 1
        return done

    assert tries("192.0.2.1", "ana", 40) == 10
    # The person logged in at one process, and is known to all.
    one = processes[0].start("192.0.2.9", "bo")
    assert one is not None
    processes[0].finish(one, succeeded=True)
    assert sum(tries(f"198.51.100.{number}", "bo", 10, wrong_code=True) for number in range(9)) == 20
    known = processes[1].start("192.0.2.9", "bo")
    assert known is not None
    # What runs in one process counts in all.
    assert tries("192.0.2.9", "bo", 20) == 9
    processes[1].finish(known, succeeded=None)
    world.clock.sleep(301)
    assert tries("192.0.2.1", "ana", 40) == 10
    assert tries("198.51.100.77", "bo", 10) == 0, "wrong codes count for a day"


def test_attempts_at_one_moment_do_not_pass_the_limit_together(world: World) -> None:
    processes = [LoginAttempts(world.store) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(lambda one: one.start("192.0.2.1", "ana"), processes * 4))
    assert len([one for one in started if one is not None]) == 10


def test_what_can_not_be_checked_is_not_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt of a flood held up whoever else writes to the database."""
    monkeypatch.setattr(passwords, "_admitted", threading.BoundedSemaphore(1))
    attempts, writes = LoginAttempts(world.store), Mock(wraps=world.store.unit_of_work)
    with passwords._admitted:
        monkeypatch.setattr(world.store, "unit_of_work", writes)
        with pytest.raises(Unavailable):
            attempts.start("192.0.2.1", "ana")
    writes.assert_not_called()
    assert attempts.start("192.0.2.1", "ana") is not None


def test_no_account_makes_the_service_forget_where_others_logged_in(world: World) -> None:
    attempts = LoginAttempts(world.store)

    def logs_in(address: str, name: str) -> tuple[str, str]:
        one = attempts.start(address, name)
        assert one is not None
        attempts.finish(one, succeeded=True)
        return one.known_as

    of_ana = logs_in("192.0.2.1", "ana")
    of_bo = [logs_in(f"2001:db8:0:{number:x}::1", "bo") for number in range(150)]
    with world.store.reading() as reading:
        assert reading.login_attempts.is_known(*of_ana)
        assert sum(reading.login_attempts.is_known(*one) for one in of_bo) == 100


def test_limits_use_the_address_that_a_trusted_proxy_reports(world: World) -> None:
    """`tests/attack/test_configuration.py` shows which proxies are trusted."""
    for number in range(3):
        with TestClient(world.app, base_url=HTTPS, client=(f"203.0.113.{number}", 5)) as client:
            assert [enter(client, "wrong", name=f"n{one}") for one in range(21)][-2:] == [401, 429]


@pytest.mark.parametrize(
    "password",
    [
        "password1234",
        "qwertyuiop12",
        "aaaaaaaaaaaaaa",
        "123456789012",
        "ana.faultline",
        "Passw0rd!2024",
        "letmeinletmein",
    ],
)
def test_a_password_that_is_easy_to_guess_is_refused(password: str) -> None:
    with pytest.raises(InvalidInput, match="harder to guess") as caught:
        passwords.hash_password(password, "ana.faultline")
    assert password not in str(caught.value)


def test_a_long_password_is_rated_quickly() -> None:
    assert passwords.hash_password("x7 ÄÖ🙂 plum Ñandú 4!" * 8)


def test_one_time_codes_follow_the_standard_and_count_once(world: World) -> None:
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # of RFC 6238, appendix B
    at = world.clock.at.fromtimestamp(1_111_111_109, world.clock.at.tzinfo)
    assert one_time_codes.matching_step(secret, "081804", at) == 37_037_036
    assert one_time_codes.matching_step(secret, "081804", at + timedelta(seconds=61)) is None
    for wrong in ("", "081805", "0818040", "٠٨١٨٠٤", "\ud800"):
        assert one_time_codes.matching_step(secret, wrong, at) is None
    with world.store.unit_of_work() as work:
        work.accounts.change("ana", totp_secret=secret)
    with world.client() as client:
        code = pyotp.TOTP(secret).at(world.clock.at)
        assert enter(client) == 401
        assert enter(client, "wrong", code) == 401
        assert enter(client, code=code) == 303
        assert enter(client, code=code) == 401  # seen by somebody over the shoulder
        world.clock.sleep(30)
        assert enter(client, code=pyotp.TOTP(secret).at(world.clock.at)) == 303


def test_codes_can_not_be_guessed_by_who_knows_the_password(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Thirty guesses in five minutes found a code in a month: three of a million are right at any time."""
    secret = pyotp.random_base32()
    with world.store.unit_of_work() as work:
        work.accounts.change("ana", totp_secret=secret)

    def guess(number: int, code: str) -> int:
        address = f"2001:db8:{number:x}::1"
        with TestClient(world.app, base_url=HTTPS, client=(address, 5), follow_redirects=False) as client:
            return enter(client, code=code)

    def code() -> str:
        return pyotp.TOTP(secret).at(world.clock.at)

    wrong = f"{(int(code()) + 500_000) % 1_000_000:06}"
    assert guess(0, code()) == 303
    world.clock.sleep(30)
    with caplog.at_level("INFO", logger="faultline.security"):
        assert {guess(number, wrong) for number in range(1, 21)} == {401}
    assert '"by":"code"' in caplog.text
    assert guess(21, code()) == 429
    assert guess(0, code()) == 303, "who logged in from an address before is not locked out by others"


def test_a_wrong_password_says_nothing_of_the_code(world: World) -> None:
    """Else anybody could lock a person out for a day."""
    with world.store.unit_of_work() as work:
        work.accounts.change("ana", totp_secret=pyotp.random_base32())
    attempts = LoginAttempts(world.store)
    for number in range(25):
        with TestClient(world.app, base_url=HTTPS, client=(f"2001:db8:{number:x}::1", 5)) as client:
            assert enter(client, "wrong", "123456") == 401
    assert attempts.start("192.0.2.1", "ana") is not None


def test_a_login_that_began_with_the_former_password_ends_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checking takes a while: the session of a thief began after those of the account had ended."""
    verify = passwords.verify

    def changed_meanwhile(stored: str | None, password: str) -> bool:
        found = verify(stored, password)
        with world.store.unit_of_work() as work:
            work.accounts.change("ana", password=passwords.hash_password("another long one 17 marble"))
        return found

    monkeypatch.setattr(passwords, "verify", changed_meanwhile)
    with world.client() as client:
        assert enter(client) == 401
        assert client.get("/failures").status_code == 303


def test_where_a_second_factor_is_required_an_account_without_one_can_not_log_in(tmp_path: Path) -> None:
    world = make_world(tmp_path, host="0.0.0.0", people=LoginMethods(one_time_codes_required=True))
    with world.store.unit_of_work() as work:
        work.accounts.create("ana", "viewer", password=passwords.hash_password(PASSWORD))
    with world.client() as client:
        assert enter(client) == 401
        secret = pyotp.random_base32()
        with world.store.unit_of_work() as work:
            work.accounts.change("ana", totp_secret=secret)
        assert enter(client) == 401
        assert enter(client, code=pyotp.TOTP(secret).at(world.clock.at)) == 303
    world.store.close()


def test_a_person_ends_all_own_sessions_and_no_others(world: World) -> None:
    with world.store.unit_of_work() as work:
        work.accounts.create("bo", "viewer", password=passwords.hash_password(PASSWORD))
    with world.client() as here, world.client() as elsewhere, world.client() as other:
        assert [enter(here), enter(elsewhere), enter(other, name="bo")] == [303, 303, 303]
        token = form_token(here, "/failures")
        assert here.post("/logout", data={"form_token": token, "everywhere": "true"}).status_code == 303
        answers = [client.get("/failures").status_code for client in (here, elsewhere, other)]
    assert answers == [303, 303, 200]


def test_all_sessions_of_a_token_end_together_and_the_audit_log_says_so(world: World) -> None:
    """The button said so to everybody; sessions of the same token on other devices stayed."""
    with world.store.unit_of_work() as work:
        secret, other = (work.tokens.create(name, ["read"])[1] for name in ("shared", "another"))
    with world.client() as here, world.client() as elsewhere, world.client() as third:
        assert [log_in(here, secret), log_in(elsewhere, secret), log_in(third, other)] == [303, 303, 303]
        form = {"form_token": form_token(here, "/failures"), "everywhere": "true"}
        assert here.post("/logout", data=form).status_code == 303
        assert [client.get("/failures").status_code for client in (here, elsewhere, third)] == [303, 303, 200]
    with world.store.reading() as reading:
        entry = next(one for one in reading.audit_log.page(limit=20).items if one.what == "sessions.ended")
    assert (entry.who, entry.subject, entry.after["sessions"]) == ("shared", "token/shared", 2)


def test_a_browser_keeps_nothing_after_logging_out(tmp_path: Path) -> None:
    world = make_world(tmp_path, host="0.0.0.0", people=LoginMethods(secure=True))
    with world.client(base_url=HTTPS) as client:
        assert log_in(client, world.token("read")) == 303
        answer = client.post("/logout", data={"form_token": form_token(client, "/failures")})
    assert answer.headers["Clear-Site-Data"] == '"cache", "cookies", "storage"'
    world.store.close()


def test_an_idle_session_ends_and_a_used_one_lasts_until_its_limit(world: World) -> None:
    with world.client() as used, world.client() as idle:
        assert [enter(used), enter(idle)] == [303, 303]
        for _ in range(6):
            world.clock.sleep(IDLE.total_seconds() - 1_000)
            assert used.get("/").status_code == 200
        assert idle.get("/").status_code == 303
        world.clock.sleep(IDLE.total_seconds() - 1_000)
        assert used.get("/").status_code == 303  # over twelve hours after the login


def test_live_updates_do_not_keep_an_unused_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page asks for them by itself: a screen that was left alone stayed logged in for twelve hours."""
    monkeypatch.setattr("service.web.pages.live.MAX_DURATION_S", 0.0)
    with world.client() as client:
        assert enter(client) == 303
        assert client.get("/failures").status_code == 200
        for _ in range(7):
            world.clock.sleep(15 * 60)
            assert client.get("/live").status_code == 200
        world.clock.sleep(16 * 60)
        assert client.get("/live").status_code == 303
        assert client.get("/failures").status_code == 303


def test_cookies_are_bound_to_the_host_where_the_public_address_has_tls(tmp_path: Path) -> None:
    world = make_world(tmp_path, host="0.0.0.0", people=LoginMethods(secure=True))
    secret = world.token("read")
    with world.client(base_url=HTTPS) as client:
        answer = client.get("/login")
        assert answer.headers["Strict-Transport-Security"].startswith("max-age=")
        [form] = answer.headers.get_list("set-cookie")
        assert form.startswith(f"{HOST_PREFIX}{FORM_COOKIE}=")
        assert log_in(client, secret) == 303
        assert f"{HOST_PREFIX}{COOKIE}" in client.cookies
        assert client.get("/").status_code == 200
        # A cookie that a page of a neighbour host set is not accepted as a session.
        session = client.cookies[f"{HOST_PREFIX}{COOKIE}"]
    with world.client(base_url=HTTPS) as other:
        other.cookies.set(COOKIE, session)
        assert other.get("/").status_code == 303
    for cookie in (form,):
        assert all(word in cookie for word in ("Secure", "HttpOnly", "Path=/", "SameSite=strict"))
        assert "Domain" not in cookie
    world.store.close()
