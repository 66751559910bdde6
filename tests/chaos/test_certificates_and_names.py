"""Certificates that must not be accepted, and names that do not resolve: real servers, real clients."""

import os
import shutil
import ssl
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from kafka.errors import KafkaTimeoutError

from service.api_client import ApiClient, ApiUnreachable
from service.db.session import Store
from service.deliveries.channels.http import NoAnswer
from service.errors import Unavailable
from service.messaging.kafka.config import KafkaConfig
from service.messaging.kafka.connect import connected, connection_problem
from tests.labs.certificates import Authority, authority
from tests.labs.need import need
from tests.labs.postgres import Postgres
from tests.service.deliveries.receivers import receiver
from tests.service.deliveries.sample_messages import poster

BAD = {
    "expired": r"certificate has expired",
    "other host": r"not valid for '127\.0\.0\.1'",
    "unknown authority": r"unable to get local issuer certificate",
}


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def certificates(trusted: Authority) -> dict[str, tuple[str, str]]:
    return {
        "expired": trusted.issue("expired", expired=True),
        "other host": trusted.issue("other", host="DNS:other.example"),
        "unknown authority": authority(trusted.folder, "stranger").issue("unknown"),
        "good": trusted.issue("good"),
    }


def given_up(**config: object) -> None:
    """What Kafka's client raises whatever the reason is. The client itself leaves its refused sockets unclosed."""
    raise KafkaTimeoutError(f"Unable to bootstrap from {config['bootstrap_servers']}")


@pytest.mark.parametrize("fault", BAD)
def test_a_bad_certificate_is_refused_with_its_reason(
    fault: str, trusted: Authority, certificates: dict[str, tuple[str, str]]
) -> None:
    tls = ssl.create_default_context(cafile=str(trusted.certificate))
    with receiver(certificates[fault]) as server:
        with pytest.raises(NoAnswer, match=BAD[fault]):
            poster(tls=tls).post(server.url, b"{}", {})
        api = ApiClient(server.url, token=lambda: "geheim", user_agent="hook", tls=tls)
        with closing(api), pytest.raises(ApiUnreachable, match=BAD[fault]):
            api.request("GET", "/x")
        address = server.url.split("/")[2]
        config = KafkaConfig((address,), ("t",), security_protocol="SSL", ssl_cafile=trusted.certificate)
        with pytest.raises(Unavailable, match=BAD[fault]) as refused:
            connected(given_up, **config.connection())
        assert "FAULTLINE_KAFKA_SSL_CAFILE" in refused.value.detail
        assert server.got == []


def test_the_clients_continue_when_the_certificate_was_renewed(
    trusted: Authority, certificates: dict[str, tuple[str, str]]
) -> None:
    tls = ssl.create_default_context(cafile=str(trusted.certificate))
    with receiver(certificates["expired"]) as server, pytest.raises(NoAnswer):
        poster(tls=tls).post(server.url, b"{}", {})
    with receiver(certificates["good"]) as server:
        assert poster(tls=tls).post(server.url, b"{}", {}).status == 200
        host = server.url.split("/")[2]
        assert connection_problem([host], tls=True, ca_file=str(trusted.certificate)) is None


def test_a_port_without_tls_is_never_used_in_plain_text(trusted: Authority) -> None:
    with receiver() as server:
        address = server.url.split("/")[2]
        found = connection_problem([address], tls=True, ca_file=str(trusted.certificate))
        assert "FAULTLINE_KAFKA_SECURITY_PROTOCOL" in str(found)
        with pytest.raises(NoAnswer, match="SSL"):
            poster().post(f"https://{address}/", b"{}", {})
        assert server.got == []


def use(server: Postgres, certificate: tuple[str, str]) -> None:
    """Have the server use a certificate for new connections."""
    for source, name in zip(certificate, ("server.crt", "server.key"), strict=True):
        path = server.folder / "data" / name
        shutil.copy(source, path)
        owner = (server.folder / "data").stat()
        os.chown(path, owner.st_uid, owner.st_gid)
        path.chmod(0o600)
    server.sql("ALTER SYSTEM SET ssl = on")
    before = server.sql("SELECT pg_conf_load_time()")
    server.sql("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 60
    while server.sql("SELECT pg_conf_load_time()") == before:  # of a new connection: the time its parent read them
        assert time.monotonic() < deadline, "the server does not read its settings"
        time.sleep(0.02)


def test_postgresql_is_used_again_when_its_certificate_was_renewed(
    postgres_server: Postgres, trusted: Authority, certificates: dict[str, tuple[str, str]]
) -> None:
    url = f"{postgres_server.url()}?sslmode=verify-full&sslrootcert={trusted.certificate}"
    try:
        with closing(Store(url)) as store:
            for fault in BAD:
                use(postgres_server, certificates[fault])
                with pytest.raises(Unavailable, match="certificate") as refused, store.reading():
                    pass
                if fault != "other host":
                    assert "sslrootcert (FAULTLINE_DATABASE_URL)" in refused.value.detail
            use(postgres_server, certificates["good"])
            with store.reading():
                pass
    finally:
        postgres_server.sql("ALTER SYSTEM RESET ssl")
        postgres_server.sql("SELECT pg_reload_conf()")


RETRYING = """
import sys, time
from pathlib import Path
from service.db.session import Store
from service.errors import Unavailable
from service.messaging.kafka.connect import connection_problem
hosts, port, url = sys.argv[1:]
store = Store(url)
try:
    with store.reading():
        pass
except Unavailable as error:
    print(error.detail)
print(connection_problem([f"names.example:{port}"], tls=False))
Path(hosts).write_text("127.0.0.1 localhost names.example\\n")
with store.reading():
    pass
print(connection_problem([f"names.example:{port}"], tls=False))
"""


def test_a_name_that_does_not_resolve_is_named_and_used_once_it_does(postgres_server: Postgres, tmp_path: Path) -> None:
    """A private /etc/hosts in a mount namespace of its own, so that the system's resolver is the real one."""
    need("unshare")
    if os.geteuid() != 0:
        pytest.skip("a private /etc/hosts needs root")
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n")
    url = postgres_server.url().replace("127.0.0.1", "names.example")
    script = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
    program = [sys.executable, "-c", RETRYING, "/etc/hosts", str(postgres_server.port), url]
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(hosts), *program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    database, broker, then = done.stdout.splitlines()
    assert "failed to resolve host 'names.example'" in database
    assert "the name names.example does not resolve" in broker
    assert "FAULTLINE_KAFKA_BOOTSTRAP_SERVERS" in broker
    assert then == "None"
