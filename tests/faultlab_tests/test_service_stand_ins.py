"""Stand-in servers answer as declared."""

import http.client
import shutil
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.faultlab.service_stand_ins import serve
from tests.labs.need import need


def get(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_it_answers_with_the_status_so_many_times_and_then_another(tmp_path: Path) -> None:
    with serve({"status": 503, "times": 2, "then": 200, "body": "busy"}, tmp_path) as given:
        assert [get(given["http"] + "/x")[0] for _ in range(3)] == [503, 503, 200]


def test_it_can_close_without_an_answer_or_send_half(tmp_path: Path) -> None:
    with serve({"drop": True}, tmp_path) as given, pytest.raises((http.client.RemoteDisconnected, OSError)):
        get(given["http"])
    with serve({"body": "x" * 100, "truncate": True}, tmp_path) as given, pytest.raises(http.client.IncompleteRead):
        get(given["http"])


def test_an_expired_certificate_is_refused_for_its_age(tmp_path: Path) -> None:
    need("openssl")
    assert shutil.which("openssl")
    with serve({"tls": "self-signed"}, tmp_path / "a") as given, pytest.raises(urllib.error.URLError) as caught:
        get(given["https"])
    assert isinstance(caught.value.reason, ssl.SSLCertVerificationError)
