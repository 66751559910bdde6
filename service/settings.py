"""The settings, from FAULTLINE_* environment variables; read once, by the composition root only."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, ValidationInfo, field_validator

import classifiers
from service import setting_checks, setting_texts, validation_words
from service.errors import ConfigurationError, FieldError
from service.learning.records import RetrainSchedule
from service.log_storage.options import LogStorageOptions
from service.log_storage.options import checked_url as log_store_url
from service.messaging.kafka.config import KafkaConfig
from service.people.records import OIDC_SCOPES, SHORTEST_SECRET, LoginOptions
from service.second_reader.options import SecondReaderOptions, checked_url
from service.setting_texts import PREFIX

if TYPE_CHECKING:
    from service.web.limits.caller_limits import RateLimit

# Settings that may be given as NAME_FILE, the path of a file with the value.
SECRETS = (
    "database_url",
    "kafka_sasl_password",
    "kafka_ssl_password",
    "oidc_client_secret",
    "proxy_secret",
    "audit_key",
    "model_key",
    "second_reader_api_key",
)
# Of these alone an empty value has a meaning: none.
LISTS = (
    "kafka_bootstrap_servers",
    "kafka_topics",
    "log_networks",
    "log_roots",
    "log_roots_any_owner",
    "roles",
    "trusted_proxies",
)
# Addresses within an organisation (RFC 1918 and 4193); those of this machine, of links and of metadata are not.
PRIVATE_NETWORKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
LARGEST = 2**31 - 1  # of a count
LONGEST_SHOWN = 200  # characters of a wrong value in a message
LONGEST_DAYS = 36_500  # a hundred years; the calendar ends at year 9999

CommaSeparated = tuple[str, ...]


def trained_model_dir() -> Path:
    """The folder that `faultline train` writes to by default, in the Python environment that it runs in."""
    return Path(sys.prefix) / "share" / "faultline" / "model"


def packaged_model_dir() -> Path:
    """The folder of the trained model that a released wheel carries; it does not exist in a checkout."""
    return Path(classifiers.__file__).parent / "trained_model"


def default_model_dir() -> Path:
    """The model trained in this environment, else the packaged one, else the folder that training will fill."""
    trained, packaged = trained_model_dir(), packaged_model_dir()
    found = (folder for folder in (trained, packaged) if (folder / "manifest.json").exists())
    return next(found, trained)


class Settings(BaseModel):
    """Every setting with its default; the names in the environment are upper case with the prefix."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    database_url: SecretStr = SecretStr("sqlite:///faultline.sqlite3")
    kafka_bootstrap_servers: CommaSeparated = ()
    kafka_topics: CommaSeparated = ("faultline-jobs",)
    kafka_group_id: str = "faultline"
    kafka_session_timeout_ms: int = Field(default=45_000, ge=1_000, le=LARGEST)
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    kafka_ssl_cafile: Path | None = None
    kafka_ssl_certfile: Path | None = None
    kafka_ssl_keyfile: Path | None = None
    kafka_ssl_password: SecretStr | None = None
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    kafka_sasl_username: str | None = None
    kafka_sasl_password: SecretStr | None = None
    dead_letter_topic: str = "faultline-dead-letters"
    dead_letter_limit: int = Field(
        default=1_000, ge=1, le=LARGEST, description="this many unreadable records in a row stop the consumer"
    )
    log_roots: CommaSeparated = ()
    log_roots_any_owner: CommaSeparated = Field(
        default=(), description="directories of log_roots whose logs are read regardless of their owner"
    )
    log_networks: CommaSeparated = Field(
        default=PRIVATE_NETWORKS,
        description="networks that are not public and that names of web servers in log_roots may lead to (empty: none)",
    )
    log_deadline_s: float = Field(default=60.0, gt=0, le=60)
    log_store_url: str | None = Field(
        default=None, description="bucket or folder for the logs of failures, s3://..., gs://... or file:///..."
    )
    log_store_allow_http: bool = Field(default=False, description="endpoint of the bucket without TLS")
    good_run_logs: Literal["off", "inline", "all"] = Field(
        default="inline",
        description="logs of successful jobs that are compared with failed runs: off, inline (in events) or all "
        "(by address too)",
    )
    model_dir: Path = Field(default_factory=default_model_dir)
    model_key: SecretStr | None = Field(default=None, description="key of the seals of models")
    policy_file: Path | None = None
    signatures_dir: Path | None = Field(default=None, description="folder of TOML files with your own signatures")
    delivery_file: Path | None = Field(default=None, description="TOML file of delivery endpoints")
    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65_535)
    timezone: str = "UTC"
    roles: CommaSeparated = Field(
        default=(), description="group=role for externally authenticated people; *: everybody"
    )
    user_claim: str = Field(
        default="preferred_username", description="claim or header with the user name of a person's jobs"
    )
    groups_claim: str = "groups"
    teams_claim: str | None = None
    oidc_issuer: str | None = None
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None
    oidc_scopes: CommaSeparated = OIDC_SCOPES
    public_url: str | None = Field(default=None, description="address of the service for browsers, https://...")
    proxy_secret: SecretStr | None = Field(default=None, description="shared secret of an authenticating proxy")
    require_one_time_codes: bool = Field(
        default=False, description="local accounts need a second factor to log in (faultline account change)"
    )
    audit_key: SecretStr | None = Field(default=None, description="key of the hashes of the audit log")
    audit_head_file: Path | None = Field(default=None, description="file for the heads of the audit log")
    trusted_proxies: CommaSeparated = Field(
        default=("127.0.0.1", "::1"), description="addresses of reverse proxies whose X-Forwarded-For is believed"
    )
    max_connections: int = Field(
        default=1_000,
        ge=1,
        le=LARGEST,
        description="connections of clients; fewer where the process may open fewer files",
    )
    intake_requests_per_minute: int = Field(
        default=6_000,
        ge=0,
        le=LARGEST,
        description="requests with events, node events or labels of each token; 0: no limit",
    )
    node_event_topic: str | None = Field(default=None, description="topic or topic=cluster of node events")
    retrain_every_days: float = Field(
        default=0.0, ge=0, le=365, description="days between retrainings on new labels; 0: never"
    )
    retrain_after_labels: int = Field(
        default=0, ge=0, le=LARGEST, description="new labels after which to retrain; 0: never"
    )
    retrain_promote: bool = Field(
        default=False, description="put a candidate of the schedule in use if the gate accepts it, without a person"
    )
    node_half_life_days: float = Field(
        default=14.0, gt=0, le=3_650, description="half-life of a node's failures in its failure rate"
    )
    second_reader_allow_http: bool = Field(default=False, description="endpoint without TLS on other machines")
    second_reader_url: str | None = Field(
        default=None, description="OpenAI-compatible endpoint that reads doubtful failures, https://.../v1"
    )
    second_reader_model: str | None = Field(default=None, validate_default=True, description="model of the endpoint")
    second_reader_api_key: SecretStr | None = Field(default=None, validate_default=True)
    second_reader_hourly_limit: int = Field(default=20, ge=1, le=3_600, description="questions an hour")
    second_reader_timeout_s: float = Field(default=60.0, gt=0, le=300)
    gpu_hour_price: float | None = Field(
        default=None, ge=0, le=1_000_000, description="price of a GPU-hour, for the cost of lost hours"
    )
    gpu_hour_currency: str = Field(default="USD", max_length=10, description="currency of gpu_hour_price")
    retention_node_events_days: int = Field(
        default=90, ge=0, le=LONGEST_DAYS, description="node events; 0: keep for ever"
    )
    retention_rows_days: int = Field(
        default=730, ge=0, le=LONGEST_DAYS, description="jobs and failures; 0: keep for ever"
    )
    retention_verdicts_days: int = Field(
        default=400, ge=0, le=LONGEST_DAYS, description="full verdicts; their searchable fields stay"
    )
    retention_logs_days: int = Field(default=90, ge=0, le=LONGEST_DAYS, description="logs; the evidence lines stay")
    retention_done_days: int = Field(
        default=30, ge=0, le=LONGEST_DAYS, description="delivered messages and dead letters"
    )

    @field_validator(*LISTS, mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    _host = field_validator("host")(setting_checks.host)
    _public_url = field_validator("public_url")(setting_checks.public_url)
    _brokers = field_validator("kafka_bootstrap_servers")(setting_checks.brokers)
    _topics = field_validator("kafka_topics")(setting_checks.topics)
    _dead_letter_topic = field_validator("dead_letter_topic")(setting_checks.topic_name)
    _node_event_topic = field_validator("node_event_topic")(setting_checks.one_topic)
    _trusted_proxies = field_validator("trusted_proxies")(setting_checks.proxies)
    _log_networks = field_validator("log_networks")(setting_checks.networks)
    _timezone = field_validator("timezone")(setting_checks.time_zone)

    @field_validator("proxy_secret", "audit_key", "model_key")
    @classmethod
    def _long_enough(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value().encode()) < SHORTEST_SECRET:
            raise ValueError(f"a random secret of at least {SHORTEST_SECRET} bytes (openssl rand -base64 32)")
        return value

    @field_validator("log_store_url")
    @classmethod
    def _log_store(cls, value: str | None) -> str | None:
        return None if value is None else log_store_url(value)

    @field_validator("second_reader_url")
    @classmethod
    def _safe_endpoint(cls, value: str | None, info: ValidationInfo) -> str | None:
        allow_http = bool(info.data.get("second_reader_allow_http"))
        return None if value is None else checked_url(value, allow_http=allow_http)

    @field_validator("second_reader_model", "second_reader_api_key")
    @classmethod
    def _with_endpoint(cls, value: Any, info: ValidationInfo) -> Any:
        url = info.data.get("second_reader_url")
        if value is not None and url is None:
            raise ValueError("a valid FAULTLINE_SECOND_READER_URL with it")
        if value is None and url is not None and info.field_name == "second_reader_model":
            raise ValueError("the name of a model of FAULTLINE_SECOND_READER_URL")
        return value

    def log_storage(self) -> LogStorageOptions | None:
        """Where logs are stored; None: in the database."""
        return None if self.log_store_url is None else LogStorageOptions(self.log_store_url, self.log_store_allow_http)

    def second_reader(self) -> SecondReaderOptions | None:
        """The second reader; None if there is none."""
        if self.second_reader_url is None or self.second_reader_model is None:
            return None
        key = self.second_reader_api_key
        return SecondReaderOptions(
            url=self.second_reader_url,
            model=self.second_reader_model,
            api_key=None if key is None else key.get_secret_value(),
            timeout_s=self.second_reader_timeout_s,
            hourly_limit=self.second_reader_hourly_limit,
            allow_http=self.second_reader_allow_http,
        )

    def login(self) -> LoginOptions:
        """How people log in."""
        secret, proxy_secret = self.oidc_client_secret, self.proxy_secret
        return LoginOptions(
            roles=self.roles,
            user_claim=self.user_claim,
            groups_claim=self.groups_claim,
            teams_claim=self.teams_claim,
            issuer=self.oidc_issuer,
            client_id=self.oidc_client_id,
            client_secret=None if secret is None else secret.get_secret_value(),
            scopes=self.oidc_scopes,
            public_url=self.public_url,
            proxy_secret=None if proxy_secret is None else proxy_secret.get_secret_value(),
            one_time_codes_required=self.require_one_time_codes,
        )

    def kafka(self) -> KafkaConfig:
        """Configuration of the Kafka connection."""
        secret, key_secret = self.kafka_sasl_password, self.kafka_ssl_password
        return KafkaConfig(
            bootstrap_servers=self.kafka_bootstrap_servers,
            topics=self.kafka_topics,
            group_id=self.kafka_group_id,
            dead_letter_topic=self.dead_letter_topic,
            session_timeout_ms=self.kafka_session_timeout_ms,
            security_protocol=self.kafka_security_protocol,
            ssl_cafile=self.kafka_ssl_cafile,
            ssl_certfile=self.kafka_ssl_certfile,
            ssl_keyfile=self.kafka_ssl_keyfile,
            ssl_password=None if key_secret is None else key_secret.get_secret_value(),
            sasl_mechanism=self.kafka_sasl_mechanism,
            sasl_username=self.kafka_sasl_username,
            sasl_password=None if secret is None else secret.get_secret_value(),
        )

    def intake_limit(self) -> "RateLimit":
        """The limit of requests of the intake, counted in this process."""
        from service.web.limits.caller_limits import RateLimit  # noqa: PLC0415 -- slow to import; only a server needs it

        return RateLimit(self.intake_requests_per_minute)

    def retrain_schedule(self) -> RetrainSchedule:
        """When to retrain."""
        return RetrainSchedule(self.retrain_every_days, self.retrain_after_labels, self.retrain_promote)

    def audit_key_bytes(self) -> bytes | None:
        """The key of the audit log; None if there is none."""
        return None if self.audit_key is None else self.audit_key.get_secret_value().encode()

    def model_key_bytes(self) -> bytes | None:
        """The key of the seals of models; None if there is none."""
        return None if self.model_key is None else self.model_key.get_secret_value().encode()

    def shown(self) -> dict[str, str]:
        """Return every setting as text, with secrets hidden and credentials removed from URLs."""
        out = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name == "database_url":
                url = value.get_secret_value()
                out[name] = setting_texts.without_credentials(url) if "://" in url else "***"
            elif isinstance(value, tuple):
                out[name] = ",".join(setting_texts.without_secrets(one) for one in value)
            else:
                out[name] = "" if value is None else setting_texts.without_secrets(str(value))
        return out


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of this process.

    Raises:
        ConfigurationError: names each unknown or wrong variable, and what was expected.
    """
    given = setting_texts.own_variables(os.environ if environ is None else environ)
    values, problems = setting_texts.given_values(given, _fields())
    if not problems:
        try:
            return Settings(**values)
        except ValidationError as error:
            for problem in error.errors(include_url=False):
                name = PREFIX + str(problem["loc"][0]).upper()
                expected = validation_words.expected(problem)
                got = None if name[len(PREFIX) :].lower() in SECRETS else given.get(name)
                problems.append(FieldError(name, expected, got and setting_texts.without_secrets(got)[:LONGEST_SHOWN]))
    text = "; ".join(f"{p.field}: expected {p.expected}" + (f", got {p.got}" if p.got else "") for p in problems)
    raise ConfigurationError(text, tuple(problems))


def refuse_unknown(environ: Mapping[str, str]) -> None:
    """For a program with variables of its own: refuse those that no program has, such as a misspelt one.

    Raises:
        ConfigurationError: names each of them.
    """
    fields, own = _fields(), sorted(setting_texts.own_variables(environ))
    problems = tuple(setting_texts.unknown(name) for name in own if setting_texts.field_of(name, fields) is None)
    if problems:
        raise ConfigurationError("; ".join(f"{one.field}: expected {one.expected}" for one in problems), problems)


def _fields() -> setting_texts.Fields:
    return setting_texts.Fields(known=Settings.model_fields, secrets=SECRETS, lists=LISTS)
