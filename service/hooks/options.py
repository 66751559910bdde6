"""The options of a hook: command-line flags, or FAULTLINE_HOOK_* environment variables; flags take precedence."""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from service import validation_words
from service.api_client import address_of
from service.errors import ConfigurationError, FieldError
from service.internet_addresses import LAST_PORT, LOOPBACK

PREFIX = "FAULTLINE_HOOK_"


class HookOptions(BaseModel):
    """Every option with its default; `--poll-s` is FAULTLINE_HOOK_POLL_S. Times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: str = Field("http://127.0.0.1:8080", description="URL of the Faultline server")
    token_file: Path | None = Field(
        None, description="file with an API token of purpose hook (with --dry-run: read); it may change at any time"
    )
    cluster: str = Field("", max_length=200, description="the cluster whose requests to take, as the events name it")
    name: str = Field("", max_length=150, description="this hook's name, for people (default: this host's name)")
    state_dir: Path = Field(
        Path("/var/lib/faultline-hook"),
        description="folder of its journal and saved scripts, on a local disk; no other hook may use it",
    )
    poll_s: float = Field(15.0, ge=0.05, le=3600, description="polling interval in seconds")
    lease_s: int = Field(120, ge=2, le=3600, description="seconds for which a request is leased")
    timeout_s: float = Field(15.0, gt=0, le=300, description="time limit of an API request in seconds")
    dry_run: bool = Field(default=False, description="log what would be done; change nothing and report nothing")
    allow_http: bool = Field(default=False, description="send the token without TLS beyond this machine")
    ca_file: Path | None = Field(None, description="PEM file of the authorities to trust, instead of the system's")
    cert_file: Path | None = Field(None, description="PEM file of a client certificate")
    key_file: Path | None = Field(None, description="PEM file of its key, where it is not in the same file")
    listen: str | None = Field(None, description="ADDRESS:PORT that takes signed webhooks, which start a round at once")
    webhook_secret_file: Path | None = Field(None, description="file with the webhooks' secret, whsec_..., one a line")
    slurm_bin: Path | None = Field(None, description="slurm: the folder of Slurm's commands, where not on the PATH")
    slurm_timeout_s: float = Field(60.0, gt=0, le=600, description="slurm: time limit of a Slurm command in seconds")
    slurmrestd: str | None = Field(
        None,
        description="slurm: use slurmrestd at unix:/PATH or http(s)://HOST:PORT, and commands for what its API lacks",
    )
    slurmrestd_token: str | None = Field(
        None,
        pattern=r"^(file:/.+|env:[A-Za-z_][A-Za-z0-9_]*)$",
        description="slurm: token of slurmrestd, file:/PATH or env:NAME",
    )
    settle_s: float = Field(20.0, ge=0, le=600, description="slurm: seconds until an interrupted action is inspected")
    save_scripts: bool = Field(default=True, description="slurm: keep failed jobs' scripts for three days")
    spool: Path | None = Field(None, description="slurm: slurmctld's StateSaveLocation, to keep their environments too")
    write_back: str | None = Field(None, description="slurm: the pages' address, to be put into the job's AdminComment")
    command: tuple[str, ...] = Field((), description="command: the program and its arguments")
    command_timeout_s: float = Field(300.0, gt=0, le=3000, description="command: time limit of the program in seconds")

    @field_validator("url", "write_back")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not _is_address(value):
            raise ValueError("an address such as https://faultline.example, without user, password and query")
        return value

    @field_validator("slurmrestd")
    @classmethod
    def _where(cls, value: str | None) -> str | None:
        if value is not None and not _is_address(value) and not re.fullmatch(r"unix:/.+", value):
            raise ValueError("unix:/PATH or http(s)://HOST:PORT, without user, password and query")
        return value

    @field_validator("cluster")
    @classmethod
    def _some_cluster(cls, value: str) -> str:
        if not value.strip() or not value.isprintable():
            raise ValueError("the cluster's name, as its events have it")
        return value

    @model_validator(mode="after")
    def _together(self) -> Self:
        host = urlsplit(self.url).hostname
        if self.url.startswith("http:") and host not in LOOPBACK and self.token_file and not self.allow_http:
            raise ValueError("url: https, or --allow-http where the network is trusted")
        rest = urlsplit(self.slurmrestd or "unix:")
        if rest.scheme != "unix" and self.slurmrestd_token is None:
            raise ValueError("slurmrestd_token: needed beyond a Unix socket")
        if rest.scheme == "http" and rest.hostname not in LOOPBACK and not self.allow_http:
            raise ValueError("slurmrestd: https, or --allow-http where the network is trusted")
        if self.listen is not None:
            self.listens_on()
            if self.webhook_secret_file is None:
                raise ValueError("webhook_secret_file: needed with listen; unsigned webhooks are not taken")
        return self

    def listens_on(self) -> tuple[str, int]:
        """Return the address and port of `listen`.

        Raises:
            ValueError: the value is not an address and port.
        """
        host, colon, port = (self.listen or "").rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > LAST_PORT:
            raise ValueError("listen: expected ADDRESS:PORT, such as 127.0.0.1:8099")
        return host.strip("[]"), int(port)

    def tls(self) -> ssl.SSLContext:
        """Return the TLS context: the trusted certificates and the client certificate.

        Raises:
            ConfigurationError: a file can't be used.
        """
        try:
            context = ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
            if self.cert_file is not None:
                context.load_cert_chain(self.cert_file, self.key_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(f"ca_file, cert_file, key_file: {error.strerror or error}") from None
        return context


def _is_address(value: str) -> bool:
    parts = address_of(value)
    return parts is not None and not parts.username and not parts.query


def read(flags: Mapping[str, Any], environ: Mapping[str, str]) -> HookOptions:
    """Return the options of this process.

    Args:
        flags: values by field name; None: not given.
        environ: the environment.

    Raises:
        ConfigurationError: names each option that is unknown or wrong, and what was expected.
    """
    values: dict[str, Any] = {}
    problems: list[FieldError] = []
    for variable, value in sorted(environ.items()):
        if not variable.upper().startswith(PREFIX):
            continue
        name = variable.upper().removeprefix(PREFIX).lower()
        if name not in HookOptions.model_fields or name == "command":
            problems.append(FieldError(variable, "a known option (faultline hook ... --help lists them)"))
        elif value != "":
            values[name] = value
    values |= {name: value for name, value in flags.items() if value is not None}
    values.setdefault("cluster", "")
    if not problems:
        try:
            return HookOptions.model_validate(values)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                field = PREFIX + str(one["loc"][0]).upper() if one["loc"] else "options"
                problems.append(FieldError(field, validation_words.expected(one)))
    raise ConfigurationError("; ".join(f"{one.field}: expected {one.expected}" for one in problems), tuple(problems))
