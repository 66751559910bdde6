"""Local stand-ins for object stores, registries and trackers: they return errors, slow, partial or no answers."""

import datetime as dt
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def _handler(fault: Mapping[str, Any]) -> type[BaseHTTPRequestHandler]:
    lock, served = threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            with lock:
                served[0] += 1
                first = served[0] <= int(fault.get("times", 1 << 30))
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            time.sleep(float(fault.get("delay_s", 0)))
            if first and fault.get("drop"):
                self.close_connection = True
                self.connection.close()
                return
            status = int(fault.get("status", 200) if first else fault.get("then", 200))
            body = str(fault.get("body", "")).encode()
            self.send_response(status)
            for name, value in fault.get("headers", {}).items():
                self.send_header(name, str(value))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) // 2] if first and fault.get("truncate") else body)
            if fault.get("truncate"):
                self.close_connection = True

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the base class's names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
            return

        def handle(self) -> None:
            try:
                super().handle()
            except (OSError, ValueError):
                return

    return Handler


def _expired(request: list[str], key: Path, cert: Path) -> None:
    # Only `openssl ca` of OpenSSL 3.0 can set dates in the past.
    past = dt.datetime.now(tz=dt.UTC) - dt.timedelta(days=40)
    with tempfile.TemporaryDirectory(dir=cert.parent) as folder:
        here = Path(folder)
        (here / "index").touch()
        (here / "serial").write_text("01\n")
        (here / "ca.cnf").write_text(
            f"[ca]\ndefault_ca=lab\n[lab]\ndatabase={here}/index\nserial={here}/serial\nnew_certs_dir={here}\n"
            "default_md=sha256\npolicy=any\ncopy_extensions=copy\nemail_in_dn=no\nunique_subject=no\n[any]\ncommonName=supplied\n"
        )
        words = [*request, "-new", "-out", str(here / "request")]
        subprocess.run(words, check=True, capture_output=True)
        dates = [
            "-startdate",
            f"{past - dt.timedelta(days=365):%Y%m%d%H%M%SZ}",
            "-enddate",
            f"{past:%Y%m%d%H%M%SZ}",
        ]
        words = ["openssl", "ca", "-batch", "-notext", "-selfsign", "-config", str(here / "ca.cnf"), "-keyfile", str(key),
                 "-in", str(here / "request"), "-out", str(cert), *dates]  # fmt: skip
        subprocess.run(words, check=True, capture_output=True)


def _certificate(kind: str, work: Path) -> tuple[Path, Path]:
    key, cert = work.parent / f"{work.name}.key", work.parent / f"{work.name}.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert),
             "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]  # fmt: skip
    if kind == "expired":
        _expired([word for word in words if word != "-x509"], key, cert)
        return key, cert
    words += ["-days", "30"]
    subprocess.run(words, check=True, capture_output=True)
    return key, cert


@contextmanager
def serve(fault: Mapping[str, Any], work: Path) -> Iterator[dict[str, str]]:
    """Start a stand-in as the fault declares; yield the placeholders `http` or `https`, `host`, `cert`."""
    server = ThreadingHTTPServer(("127.0.0.1", int(fault.get("port", 0))), _handler(fault))
    server.daemon_threads = True
    scheme, given = "http", {}
    if fault.get("tls"):
        key, cert = _certificate(fault["tls"], work)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme, given = "https", {"cert": str(cert)}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        where = f"127.0.0.1:{server.server_address[1]}"
        name = str(fault.get("name", "localhost" if scheme == "https" else "127.0.0.1"))
        yield {scheme: f"{scheme}://{name}:{server.server_address[1]}", "host": where, **given}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
