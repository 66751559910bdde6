"""The administrator's file of endpoints: read once, validated; secrets only by reference."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr, ValidationError, field_validator

from classifiers.taxonomy import Decision, Side
from service import toml_positions
from service.contracts.event import as_unreadable
from service.deliveries.channels.channel import OWNER, PLAIN_USER, Dedup, Severity
from service.deliveries.channels.signing import key_of
from service.deliveries.records import FailureFacts
from service.errors import ConfigurationError
from service.setting_texts import small_text, toml_text

VARIABLE = "FAULTLINE_DELIVERY_FILE"
REFERENCE = "file:/path or env:NAME (secrets do not stand in this file)"
_CENTURY_S = 3_153_600_000  # a time that is reckoned from now has to stay within the calendar
Pause = Annotated[float, Field(ge=0, le=_CENTURY_S)]
Span = Annotated[float, Field(gt=0, le=_CENTURY_S)]


class _Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Sending(_Checked):
    """The schedule of deliveries; see defaults.toml."""

    schedule_s: tuple[Pause, ...] = Field(min_length=1)
    jitter: float = Field(ge=0, le=1)
    timeout_s: float = Field(gt=0, le=60)
    lease_s: float = Field(ge=1, le=_CENTURY_S)
    batch: int = Field(ge=1, le=500)
    circuit_failures: int = Field(ge=1)
    pause_s: Span
    longest_pause_s: Span
    give_up_after_s: Span
    answer_bytes: int = Field(ge=0)


class Network(_Checked):
    """Allowed addresses besides public ones, and trusted certificates besides those of the system."""

    allow: tuple[IPv4Network | IPv6Network, ...] = ()
    ca_file: Path | None = None


class Route(BaseModel):
    """One route to an endpoint; an absent condition always holds, one with an unknown fact does not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: tuple[str, ...] | None = Field(default=None, description='"failure.*" matches every type below failure')
    side: tuple[Side, ...] | None = None
    cause: tuple[str, ...] | None = Field(default=None, description='codes; "HW.*" matches every code below HW')
    decision: tuple[Decision, ...] | None = None
    cluster: tuple[str, ...] | None = None
    team: tuple[str, ...] | None = None
    queue: tuple[str, ...] | None = None
    user: tuple[str, ...] | None = None
    abstained: bool | None = None
    min_gpu_hours: float | None = Field(default=None, ge=0, description="GPU-hours the job lost at least")
    min_gpus: int | None = Field(default=None, ge=0, description="GPUs the job had at least")
    new_kind: bool | None = Field(default=None, description="whether it is the first failure of its kind")

    def takes(self, kind: str, verdict: Mapping[str, Any], facts: FailureFacts | None) -> bool:
        """Whether a message matches this route."""
        return (
            _any(self.type, kind)
            and _any(self.side, verdict.get("side"))
            and _any(self.cause, verdict.get("cause"))
            and _any(self.decision, verdict.get("decision"))
            and _any(self.cluster, verdict.get("cluster"))
            and _any(self.team, facts.team if facts else None)
            and _any(self.queue, facts.queue if facts else None)
            and _any(self.user, facts.user if facts else None)
            and (self.abstained is None or verdict.get("abstained") is self.abstained)
            and (self.min_gpu_hours is None or (facts is not None and facts.gpu_hours_lost >= self.min_gpu_hours))
            and (self.min_gpus is None or (facts is not None and (facts.gpus or 0) >= self.min_gpus))
            and (self.new_kind is None or (facts is not None and facts.new_kind is self.new_kind))
        )


class _Endpoint(_Checked):
    name: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.-]+$")
    route: tuple[Route, ...] = Field(default=(), description="none: everything")


class _Addressed(_Endpoint):
    url: SecretStr

    @field_validator("url", mode="before")
    @classmethod
    def _resolved(cls, value: Any) -> Any:
        """An address may itself be a secret, so it may be given by reference."""
        if not isinstance(value, str):
            return value
        text = _referenced(value) if value.startswith(("file:", "env:")) else value
        if not _is_address(text):
            raise ValueError(
                "https://HOST/PATH in ASCII, without blanks, user and password, or a reference to a file that holds it"
            )
        return text


class Webhook(_Addressed):
    """A receiver of Standard Webhooks.

    `secrets`: the first key is the current one, further keys are being rotated out.
    """

    kind: Literal["webhook"]
    secrets: tuple[SecretBytes, ...] = Field(min_length=1)

    @field_validator("secrets", mode="before")
    @classmethod
    def _keys(cls, value: Any) -> Any:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ValueError(f"a list, each entry {REFERENCE}")
        return tuple(key_of(_referenced(one)) for one in value)


class PagerDuty(_Addressed):
    """PagerDuty Events API v2. `dedup`: one incident for each failure, or for each kind of failure."""

    kind: Literal["pagerduty"]
    url: SecretStr = SecretStr("https://events.pagerduty.com/v2/enqueue")
    routing_key: SecretStr
    dedup: Dedup = "failure"

    @field_validator("routing_key", mode="before")
    @classmethod
    def _key(cls, value: Any) -> Any:
        return _referenced(value)


class Alertmanager(_Addressed):
    """Prometheus Alertmanager: `url` up to the host (and prefix); an alert ends after `lasts_s`."""

    kind: Literal["alertmanager"]
    dedup: Dedup = "failure"
    lasts_s: Span = 3600


class Topic(_Endpoint):
    """A Kafka topic on the broker of FAULTLINE_KAFKA_*."""

    kind: Literal["kafka"]
    topic: str = Field(default="faultline-verdicts", pattern=r"^[A-Za-z0-9._-]{1,249}$")


class Chat(_Endpoint):
    """A chat or a mailbox, by apprise. `digest_s`: at most one message per owner and kind of failure in this time.

    `recipients`: what replaces `{user}` in the address, by user name; other users get no message. Left out: the name.
    """

    kind: Literal["chat"]
    url: SecretStr
    digest_s: Pause = 3600
    recipients: Mapping[str, str] | None = None

    @field_validator("url", mode="before")
    @classmethod
    def _address(cls, value: Any) -> Any:
        return _referenced(value)


class MailFolder(_Endpoint):
    """Mails to people as files in a folder. `digest_s`: as for a chat."""

    kind: Literal["folder"]
    path: Path
    digest_s: Pause = 3600


class Chats(_Checked):
    """The apprise schemes that may be used."""

    schemas: tuple[str, ...] = Field(min_length=1)


Endpoint = Annotated[Webhook | PagerDuty | Alertmanager | Topic | Chat | MailFolder, Field(discriminator="kind")]


class DeliveryConfig(_Checked):
    """The whole file. `public_url`: the public address of this service, for links."""

    public_url: str | None = None
    network: Network = Network()
    sending: Sending
    severity: Mapping[str, Severity]
    chat: Chats
    endpoint: tuple[Endpoint, ...] = ()

    @field_validator("severity")
    @classmethod
    def _of_sides(cls, value: Mapping[str, Severity]) -> Mapping[str, Severity]:
        unknown = sorted(set(value) - set(get_args(Side)))
        if unknown:
            raise ValueError(f"severities of {', '.join(get_args(Side))}, not of {', '.join(unknown)}")
        return value

    @field_validator("endpoint")
    @classmethod
    def _distinct(cls, value: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
        names = [one.name for one in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"names that occur once; twice: {', '.join(twice)}")
        return value


@dataclass(frozen=True, slots=True)
class ReportReceiver:
    """An endpoint that can send the weekly report.

    `personal`: its address contains the name of a user, one of `users` if these are listed. `mail`: it sends mail.
    `folder`: where it writes mails instead of sending them.
    """

    name: str
    personal: bool
    mail: bool
    users: frozenset[str] | None = None
    folder: Path | None = None

    def reaches(self, user: str) -> bool:
        """Whether a report can be sent to a user."""
        return PLAIN_USER.fullmatch(user) is not None and (self.users is None or user in self.users)


def report_receivers(config: DeliveryConfig | None) -> tuple[ReportReceiver, ...]:
    """The endpoints that people can subscribe to the weekly report: chats, mail, webhooks and topics."""
    found = []
    for one in () if config is None else config.endpoint:
        if isinstance(one, Chat):
            url = one.url.get_secret_value()
            users = None if one.recipients is None else frozenset(one.recipients)
            found.append(ReportReceiver(one.name, OWNER in url, url.startswith(("mailto:", "mailtos:")), users))
        elif isinstance(one, MailFolder):
            found.append(ReportReceiver(one.name, personal=True, mail=True, folder=one.path))
        elif isinstance(one, Webhook | Topic):
            found.append(ReportReceiver(one.name, personal=False, mail=False))
    return tuple(found)


def defaults() -> dict[str, Any]:
    """The packaged settings."""
    return tomllib.loads(files("service.deliveries").joinpath("defaults.toml").read_text(encoding="utf-8"))


def parse(text: str, name: str = "delivery.toml") -> DeliveryConfig:
    """The settings from TOML text, merged with the defaults.

    Raises:
        ConfigurationError: names each invalid setting and the expected value; repeats no value.
    """
    try:
        given = toml_positions.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{name}: not TOML: {error}") from None
    for section, values in defaults().items():
        if isinstance(given.get(section, {}), dict):
            given[section] = values | given.get(section, {})
    try:
        return DeliveryConfig.model_validate(given)
    except ValidationError as error:
        raise ConfigurationError(f"{name}: {'; '.join(_wrong_settings(error, given, text))}") from None


def _wrong_settings(error: ValidationError, given: Mapping[str, Any], text: str) -> list[str]:
    """Each wrong setting with its line and the expected value; no value, since it may be a secret."""
    found: dict[str, str] = {}
    for problem, translated in zip(error.errors(include_url=False), as_unreadable(error).errors, strict=False):
        path = _path_in_file(problem["loc"], given, required=problem["type"] == "missing")
        line = toml_positions.line_of(text, path)
        field = ".".join(map(str, path)) or "(whole file)"
        place = field if line is None else f"{field} (line {line})"
        found.setdefault(place, "unknown setting" if problem["type"] == "extra_forbidden" else translated.expected)
    return [f"{place}: {expected}" for place, expected in found.items()]


def _path_in_file(loc: Sequence[str | int], given: Any, *, required: bool) -> tuple[str | int, ...]:
    """The path of a setting without the steps that name a variant of a type; a `required` setting is not there yet."""
    path: list[str | int] = []
    for step in loc:
        listed = isinstance(given, list) and isinstance(step, int) and step < len(given)
        if listed or (isinstance(given, dict) and step in given):
            path.append(step)
            given = given[step]
    return (*path, loc[-1]) if required else tuple(path)


def load(path: Path) -> DeliveryConfig:
    """The settings of a file.

    Raises:
        ConfigurationError: the file cannot be read, or a setting is invalid.
    """
    return parse(toml_text(path, f"{VARIABLE}: {path}"), str(path))


def _is_address(text: str) -> bool:
    """Whether requests can be sent to an address."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    sendable = text.isascii() and text.isprintable() and " " not in text
    return sendable and parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None


def _referenced(value: Any) -> str:
    """The secret that a reference names."""
    kind, colon, where = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not colon or kind not in {"file", "env"}:
        raise ValueError(f"expected {REFERENCE}")
    if kind == "env":
        found = os.environ.get(where)
        if not found:
            raise ValueError(f"the environment has no {where}")
        return found.strip()
    try:
        return small_text(Path(where))
    except (OSError, ValueError):
        raise ValueError(f"{where} can't be read") from None


def _any(wanted: tuple[str, ...] | None, got: object) -> bool:
    """Whether `got` is one of `wanted`; `X.*` matches everything that begins with `X.`."""
    if wanted is None:
        return True
    if not isinstance(got, str):
        return False
    return any(got.startswith(one[:-1]) if one.endswith(".*") else got == one for one in wanted)
