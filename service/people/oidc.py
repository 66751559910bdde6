"""OpenID Connect: the authorization code flow with PKCE (RFC 7636), by authlib; ID tokens checked by joserfc."""

import http.client
import io
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import Key, KeySet
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from service.errors import Forbidden, Unavailable
from service.people.login_methods import PendingLogin, is_safe_address
from service.people.records import OIDC_SCOPES

TIMEOUT_S = 10  # for the connection, and for each piece of an answer
WHOLE_S = 20  # for an answer
MOST_BYTES = 1024 * 1024  # of one answer; those of large providers have some 20 KB
METADATA_S = 3600.0
LEEWAY_S = 60
# Logins that wait for the provider at once. Each takes a thread of the 40 that answer all requests.
WAITING = 4
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_Session = TypeVar("_Session", bound=requests.Session)
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


class _UntilDeadline(io.RawIOBase):
    """What a connection receives, up to a time; a socket's own timeout begins again with each byte."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection
        self._received = connection.makefile("rb", buffering=0)
        self._ends = time.monotonic() + WHOLE_S

    def readable(self) -> bool:
        """As in the wrapped file."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """As in the wrapped file.

        Raises:
            TimeoutError: nothing came in time, or not the whole.
        """
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(min(TIMEOUT_S, left))
        return self._received.readinto(buffer)

    def close(self) -> None:
        """As in the wrapped file."""
        self._received.close()
        super().close()

    def makefile(self, mode: str) -> io.BufferedReader:
        """What `http.client` reads an answer from."""
        del mode
        return io.BufferedReader(self)


class _Answer(http.client.HTTPResponse):
    """An answer whose status line, headers and body come within `WHOLE_S`."""

    def __init__(self, sock: socket.socket, *given: Any, **named: Any) -> None:
        # Of a socket it uses `makefile` alone.
        super().__init__(cast("socket.socket", _UntilDeadline(sock)), *given, **named)


class _Connection(HTTPConnection):
    response_class = _Answer


class _SecureConnection(HTTPSConnection):
    response_class = _Answer


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class _Bounded(HTTPAdapter):
    """Reads an answer up to a size and within a time; `requests` has no limit for a whole one."""

    def init_poolmanager(self, *given: Any, **named: Any) -> None:
        """Connect with the limit of a whole answer."""
        super().init_poolmanager(*given, **named)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **named: Any) -> ProxyManager:
        """Connect with the limit of a whole answer."""
        manager: ProxyManager = super().proxy_manager_for(proxy, **named)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        """Send a request and return its answer.

        Raises:
            requests.RequestException: no whole answer in time, or a very large one.
        """
        response = super().send(request, **{**options, "stream": True})
        body = bytearray()
        try:
            while piece := response.raw.read1(64 * 1024, decode_content=True):
                body += piece
                if len(body) > MOST_BYTES:
                    raise requests.exceptions.ContentDecodingError
        except HTTPError as error:
            raise requests.ConnectionError(error) from error
        finally:
            response.raw.close()
        response.raw = io.BytesIO(body)
        return response


_POOLS: Final = {"http": _Pool, "https": _SecurePool}


class Provider:
    """One identity provider. `scopes`: what it is asked for (OpenID Connect Core 1.0, section 5.4)."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str | None,
        redirect_uri: str,
        scopes: Sequence[str] = OIDC_SCOPES,
    ) -> None:
        self._issuer = issuer.rstrip("/")
        self._client_id = client_id
        self._client_secret = client_secret
        self._redirect_uri = redirect_uri
        self._scopes = tuple(scopes)
        self._lock = threading.Lock()
        self._waiting = threading.BoundedSemaphore(WAITING)
        self._known: tuple[float, dict[str, Any], KeySet] | None = None

    def start(self) -> PendingLogin:
        """Start a login.

        Raises:
            Unavailable: the provider does not answer, or other logins wait for it.
        """
        with self._one_of_few():
            metadata, _ = self._discovered()
        verifier, nonce = generate_token(64), generate_token(32)
        url, state = self._session().create_authorization_url(
            metadata["authorization_endpoint"], code_verifier=verifier, nonce=nonce
        )
        return PendingLogin(url, state, nonce, verifier)

    def finish(self, code: str, *, nonce: str, verifier: str) -> dict[str, Any]:
        """The person's claims, for the authorization code of the callback.

        Raises:
            Forbidden: the provider refuses the code, or its ID token is invalid.
            Unavailable: the provider does not answer, or other logins wait for it.
        """
        with self._one_of_few():
            return self._finished(code, nonce, verifier)

    def _finished(self, code: str, nonce: str, verifier: str) -> dict[str, Any]:
        metadata, _ = self._discovered()
        try:
            answer = self._session().fetch_token(
                metadata["token_endpoint"], code=code, code_verifier=verifier, timeout=TIMEOUT_S, allow_redirects=False
            )
        except requests.RequestException as error:
            raise Unavailable(f"the identity provider does not answer: {type(error).__name__}") from None
        except OAuthError as error:
            raise Forbidden(f"the identity provider refuses: {str(error)[:200]}") from None
        except (TypeError, ValueError, AttributeError):  # JSON, but no answer of RFC 6749
            raise Unavailable("the identity provider's answer to the code can't be read") from None
        try:
            token = self._decoded(str(answer.get("id_token", "")))
            jwt.JWTClaimsRegistry(
                leeway=LEEWAY_S,
                iss={"essential": True, "value": metadata["issuer"]},
                aud={"essential": True, "value": self._client_id},
                exp={"essential": True},
                nonce={"essential": True, "value": nonce},
            ).validate(token.claims)
        except (JoseError, ValueError) as error:
            raise Forbidden(f"the identity provider's token is invalid: {_reason(error)}") from None
        self._check_party(token.claims)
        return dict(token.claims)

    @contextmanager
    def _one_of_few(self) -> Iterator[None]:
        if not self._waiting.acquire(blocking=False):
            raise Unavailable("other logins wait for the identity provider: try again in a few seconds")
        try:
            yield
        finally:
            self._waiting.release()

    def _decoded(self, signed: str) -> jwt.Token:
        """The token, by the provider's keys; they are read again if they do not fit, as they may have changed.

        Raises:
            JoseError, ValueError: the token is not signed by the provider.
            Unavailable: the provider does not answer.
        """
        try:
            return jwt.decode(signed, self._discovered()[1], algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            self._forget()
        return jwt.decode(signed, self._discovered()[1], algorithms=ALGORITHMS)

    def _check_party(self, claims: dict[str, Any]) -> None:
        """Check that the token was issued to this service (OpenID Connect Core 1.0, section 3.1.3.7).

        Raises:
            Forbidden: it is for several audiences and names no party, or names another one.
        """
        audiences = claims.get("aud")
        party = claims.get("azp")
        several = isinstance(audiences, list) and len(audiences) > 1
        if (several or party is not None) and party != self._client_id:
            raise Forbidden("the identity provider's token is invalid: it was issued to another party (azp)")

    def _session(self) -> OAuth2Session:
        return _bounded(
            OAuth2Session(
                self._client_id,
                self._client_secret,
                scope=" ".join(self._scopes),
                redirect_uri=self._redirect_uri,
                code_challenge_method="S256",
            )
        )

    def _discovered(self) -> tuple[dict[str, Any], KeySet]:
        """The provider's metadata and keys, cached for an hour."""
        with self._lock:
            if self._known is not None and time.monotonic() - self._known[0] < METADATA_S:
                return self._known[1], self._known[2]
            metadata = self._get(f"{self._issuer}/.well-known/openid-configuration")
            if str(metadata.get("issuer", "")).rstrip("/") != self._issuer:
                raise Unavailable(
                    f"the identity provider's metadata has another issuer: {str(metadata.get('issuer'))[:120]}"
                )
            # Whoever changes an answer of one of them on its way logs in as anybody.
            wrong = [name for name in _ENDPOINTS if not is_safe_address(metadata.get(name))]
            if wrong:
                raise Unavailable(f"the identity provider's metadata has no https:// address as {', '.join(wrong)}")
            keys = _usable_keys(self._get(metadata["jwks_uri"]))
            self._known = (time.monotonic(), metadata, keys)
            return metadata, keys

    def _get(self, url: str) -> dict[str, Any]:
        try:
            with _bounded(requests.Session()) as session:
                answer = session.get(url, timeout=TIMEOUT_S, allow_redirects=False)
            answer.raise_for_status()
            found = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise Unavailable(f"the identity provider does not answer: {type(error).__name__}") from None
        if not isinstance(found, dict):
            raise Unavailable("the identity provider's answer is not a JSON object")
        return found

    def _forget(self) -> None:
        with self._lock:
            self._known = None


def _bounded(session: _Session) -> _Session:
    for scheme in ("https://", "http://"):
        session.mount(scheme, _Bounded())
    return session


def _reason(error: Exception) -> str:
    """What is wrong with a token, with the claim if there is one."""
    name, claim = type(error).__name__, getattr(error, "claim", None)
    if claim in {"iat", "nbf", "exp"}:
        return f"{name} ({claim}; the clocks of this machine and of the provider may differ by {LEEWAY_S} s)"
    return name if claim is None else f"{name} ({claim})"


def _usable_keys(found: dict[str, Any]) -> KeySet:
    """The keys that can be read; others are ignored (RFC 7517, section 5), such as those of an unknown curve or use.

    Raises:
        Unavailable: there is none.
    """
    keys: list[Key] = []
    problem: Exception = ValueError()
    given = found.get("keys")
    for one in given if isinstance(given, list) else ():
        try:
            keys.extend(KeySet.import_key_set({"keys": [one]}).keys)
        except (JoseError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = error
    if not keys:
        raise Unavailable(f"the identity provider's keys can't be read: {type(problem).__name__}")
    return KeySet(keys)
