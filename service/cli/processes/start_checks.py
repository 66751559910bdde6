"""What a process checks before it starts, so that a wrong setting is found then and not when it is first needed."""

import logging
import ssl
from pathlib import Path

from classifiers.regular_file import read_regular
from service.compose import ProcessServices
from service.errors import ConfigurationError, FieldError
from service.logs.allowed_roots import parse_roots
from service.setting_texts import PREFIX
from service.settings import Settings
from service.signatures.reloading_diagnoser import writable_by_others

log = logging.getLogger(__name__)


def check(services: ProcessServices) -> None:
    """Check the files and directories of the settings. Brokers are not asked: one that is down may come back.

    Raises:
        ConfigurationError: a setting is unusable; the message names it.
    """
    _log_roots(services.settings)
    _kafka_files(services.settings)
    services.audit_heads.check()
    exposed = writable_by_others(services.settings.model_dir, services.settings.model_key_bytes())
    if exposed is not None:
        log.warning("FAULTLINE_MODEL_DIR: %s", exposed)
    if services.settings.kafka_bootstrap_servers:
        if services.kafka.sends_password:
            log.warning(
                "FAULTLINE_KAFKA_SECURITY_PROTOCOL: SASL_PLAINTEXT with PLAIN sends the broker's password unencrypted;"
                " use SASL_SSL, or SCRAM-SHA-512 in FAULTLINE_KAFKA_SASL_MECHANISM"
            )
        services.node_event_kafka  # noqa: B018 - as above


def _log_roots(settings: Settings) -> None:
    roots = parse_roots(settings.log_roots, settings.log_roots_any_owner).local
    for name, folders in (("log_roots", roots), ("log_roots_any_owner", settings.log_roots_any_owner)):
        for folder in folders:
            if not Path(folder).is_dir():
                raise _wrong(name, "directories that exist", folder)


def _kafka_files(settings: Settings) -> None:
    """Load the certificates as the client will."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in ("kafka_ssl_cafile", "kafka_ssl_certfile", "kafka_ssl_keyfile"):
        path: Path | None = getattr(settings, name)
        try:
            if path is not None:
                read_regular(path, 0)  # the library waits for a pipe, and reads a device, without an end
        except (OSError, ValueError) as error:
            raise _wrong(name, "a readable file", path, error) from None
    if (authorities := settings.kafka_ssl_cafile) is not None:
        try:
            tls.load_verify_locations(authorities)
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise _wrong("kafka_ssl_cafile", "a readable file of certificates (PEM)", authorities, error) from None
    if settings.kafka_ssl_certfile is not None:
        # Without a password, an empty one: OpenSSL would ask on the terminal.
        password = settings.kafka_ssl_password.get_secret_value() if settings.kafka_ssl_password is not None else ""
        try:
            tls.load_cert_chain(settings.kafka_ssl_certfile, settings.kafka_ssl_keyfile, password)
        except (OSError, ValueError) as error:
            expected = (
                "a certificate (PEM) with the key of FAULTLINE_KAFKA_SSL_KEYFILE and FAULTLINE_KAFKA_SSL_PASSWORD"
            )
            raise _wrong("kafka_ssl_certfile", expected, settings.kafka_ssl_certfile, error) from None


def _wrong(name: str, expected: str, got: object, error: Exception | None = None) -> ConfigurationError:
    reason = "" if error is None else f" ({getattr(error, 'strerror', None) or type(error).__name__})"
    field = f"{PREFIX}{name.upper()}"
    return ConfigurationError(
        f"{field}: expected {expected}, got {got}{reason}", (FieldError(field, expected, str(got)),)
    )
