"""A small identity provider on this machine: discovery, keys, and a token endpoint that checks code and PKCE."""

import base64
import hashlib
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import orjson
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from tests.service.http_server import listening


@cache
def _key() -> RSAKey:
    """The key of all providers: making one takes a tenth of a second."""
    return RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})


@dataclass
class IdentityProvider:
    """State: `codes` maps a code to the challenge and the claims of its login; `claims` is mixed in last.

    `metadata` replaces what discovery says, `token_moved` is where the token endpoint redirects to, `asked` has the
    bodies that it got.
    """

    issuer: str = ""
    key: RSAKey = field(default_factory=_key)
    signing: RSAKey | None = None
    codes: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    claims: dict[str, Any] = field(default_factory=dict)
    further_keys: list[dict[str, Any]] = field(default_factory=list)
    odd_answer: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
    token_moved: str = ""
    asked: list[str] = field(default_factory=list)

    def grant(self, url: str, **claims: Any) -> str:
        """The code that a login at `url` (the authorization request) ends in."""
        asked = {name: values[0] for name, values in parse_qs(url.partition("?")[2]).items()}
        assert asked["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = (asked["code_challenge"], {"nonce": asked["nonce"], "aud": asked["client_id"], **claims})
        return code

    def token(self, form: dict[str, list[str]]) -> dict[str, Any] | None:
        """The token response for a code, once; None if the code or the verifier is wrong."""
        challenge, claims = self.codes.pop(form["code"][0], ("", {}))
        digest = hashlib.sha256(form["code_verifier"][0].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != challenge:
            return None
        now = int(time.time())
        payload = {"iss": self.issuer, "sub": "1", "iat": now, "exp": now + 300, **claims, **self.claims}
        key = self.signing or self.key
        signed = jwt.encode({"alg": "RS256", "kid": key.kid}, payload, key)
        return {"access_token": "a", "token_type": "Bearer", "id_token": signed}


@contextmanager
def running(certificate: tuple[str, str] | None = None) -> Iterator[IdentityProvider]:
    """A provider that listens on loopback; over TLS with a certificate and its key."""
    provider = IdentityProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/keys":
                keys = KeySet([provider.key]).as_dict(private=False)["keys"]
                return self._answer(200, {"keys": [*provider.further_keys, *keys]})
            known = {
                "issuer": provider.issuer,
                "authorization_endpoint": f"{provider.issuer}/authorize",
                "token_endpoint": f"{provider.issuer}/token",
                "jwks_uri": f"{provider.issuer}/keys",
            }
            return self._answer(200, known | provider.metadata)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            provider.asked.append(body)
            if provider.token_moved:
                self.send_response(307)
                self.send_header("Location", provider.token_moved)
                self.send_header("Content-Length", "0")
                return self.end_headers()
            answer = provider.odd_answer or provider.token(parse_qs(body))
            return self._answer(200 if answer else 400, answer or {"error": "invalid_grant"})

        def _answer(self, status: int, body: Any) -> None:
            content = orjson.dumps(body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            del args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with listening(server) as address:
        provider.issuer = address if certificate is None else address.replace("http:", "https:")
        yield provider
