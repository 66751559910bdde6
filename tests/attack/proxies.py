"""Real reverse proxies in front of a server: nginx and HAProxy, configured as an authenticating proxy.

`/api/` is passed on without an identity, for programs with tokens. Everything else needs the proxy's own login, and the
proxy names the person to the server. Connections to the server are reused for requests of different clients.
"""

import base64
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.attack.server import PROXY_SECRET, Server, response
from tests.labs.need import need
from tests.labs.ports import free_port

PERSON, PASSWORD = "ana", "of-the-proxy"
BASIC = "Basic " + base64.b64encode(f"{PERSON}:{PASSWORD}".encode()).decode()

NGINX = """\
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_max_body_size 65m; proxy_request_buffering off; proxy_http_version 1.1;
  upstream faultline {{ server 127.0.0.1:{server}; keepalive 2; }}
  server {{
    listen 127.0.0.1:{port};
    proxy_set_header Connection ""; proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;
    location / {{
      auth_basic "faultline"; auth_basic_user_file {folder}/passwords; proxy_pass http://faultline;
      proxy_set_header Authorization ""; proxy_set_header X-User $remote_user; proxy_set_header X-Groups viewers;
      proxy_set_header X-Faultline-Proxy-Secret {secret};
      proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;
    }}
    location /login {{ proxy_pass http://faultline; }}
    location /api/ {{ proxy_pass http://faultline; }}
    location /health/ {{ proxy_pass http://faultline; }}
  }}
}}
"""
HAPROXY = """\
global
  maxconn 512
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option forwardfor
userlist people
  user {person} insecure-password {password}
frontend in
  bind 127.0.0.1:{port}
  acl open path_beg /api/ /health/ /login
  http-request auth realm faultline unless open || {{ http_auth(people) }}
  http-request set-header X-User %[http_auth_user] unless open
  http-request set-header X-Groups viewers unless open
  http-request set-header X-Faultline-Proxy-Secret {secret} unless open
  http-request del-header Authorization unless open
  default_backend faultline
backend faultline
  http-reuse always
  server faultline 127.0.0.1:{server}
"""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running proxy."""

    name: str
    port: int

    def connected(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection from an address of this machine."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(source, 0))

    def ask(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: bytes = b"",
        source: str = "127.0.0.1",
    ) -> str:
        """The whole response to one request on its own connection."""
        lines = [f"{method} {path} HTTP/1.1", "Connection: close"]
        given = {"Host": "faultline.example", "Content-Length": str(len(body)), **(headers or {})}
        lines += [f"{name}: {value}" for name, value in given.items()]
        return self.raw(("\r\n".join(lines) + "\r\n\r\n").encode() + body, source)

    def raw(self, data: bytes, source: str = "127.0.0.1") -> str:
        """Everything that is sent back for these bytes until the connection is closed."""
        with self.connected(source) as made:
            made.sendall(data)
            return response(made)


@contextmanager
def nginx(server: Server, folder: Path) -> Iterator[Proxy]:
    """An nginx in front of the server."""
    need("nginx", "openssl")
    hashed = subprocess.run(["openssl", "passwd", "-apr1", PASSWORD], capture_output=True, text=True, check=True)
    (folder / "passwords").write_text(f"{PERSON}:{hashed.stdout}")
    errors = str(folder / "error.log")
    with _running("nginx", NGINX, server, folder, lambda file: ["nginx", "-e", errors, "-c", file]) as proxy:
        yield proxy


@contextmanager
def haproxy(server: Server, folder: Path) -> Iterator[Proxy]:
    """An HAProxy in front of the server."""
    need("haproxy")
    with _running("haproxy", HAPROXY, server, folder, lambda file: ["haproxy", "-db", "-f", file]) as proxy:
        yield proxy


@contextmanager
def _running(
    name: str, template: str, server: Server, folder: Path, command: Callable[[str], list[str]]
) -> Iterator[Proxy]:
    port = free_port()
    names = {"secret": PROXY_SECRET, "person": PERSON, "password": PASSWORD, "folder": folder}
    file = folder / "proxy.conf"
    file.write_text(template.format(port=port, server=server.port, **names))
    with (folder / "proxy.log").open("wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *command(str(file))], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
    try:
        _wait(port, process, folder)
        yield Proxy(name, port)
    finally:
        process.kill()
        process.wait(30)


def _wait(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((folder / "proxy.log").read_text(errors="replace"))
        time.sleep(0.05)
