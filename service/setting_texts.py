"""Settings as texts: read from variables of the environment and from files, and shown without secrets."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from classifiers.redaction import redact
from classifiers.regular_file import read_regular
from service import setting_checks
from service.errors import ConfigurationError, FieldError

PREFIX = "FAULTLINE_"
MOST_BYTES = 64 * 1024  # of a file with a secret (judgement)
# Judgement: far above any file written by hand, and small enough to be read and checked at once.
TOML_BYTES = 1024 * 1024
# Of programs that read their own settings: the prefix of a hook, which refuses unknown ones, and those of a client.
HOOK_PREFIX = "FAULTLINE_HOOK_"
CLIENT_URL = "FAULTLINE_CLIENT_URL"
CLIENT_TOKEN_FILE = "FAULTLINE_CLIENT_TOKEN_FILE"  # noqa: S105 - a variable's name


@dataclass(frozen=True, slots=True)
class Fields:
    """The names of all settings, of those that may be given as the path of a file, and of lists."""

    known: Collection[str]
    secrets: Collection[str]
    lists: Collection[str]


def own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that are settings by their prefix."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper().startswith(PREFIX)
        and not name.upper().startswith(HOOK_PREFIX)
        and name.upper() not in {CLIENT_URL, CLIENT_TOKEN_FILE}
    }


def field_of(variable: str, fields: Fields) -> str | None:
    """The field that a variable, or the secret file that it names, gives a value to; None if it is unknown."""
    name = variable.upper().removeprefix(PREFIX).lower()
    if name in fields.known:
        return name
    secret = name.removesuffix("_file")
    return secret if secret != name and secret in fields.secrets else None


def unknown(variable: str) -> FieldError:
    """What is wrong with a variable that no program has."""
    return FieldError(variable, "a known setting (faultline config show lists them)")


def given_values(given: Mapping[str, str], fields: Fields) -> tuple[dict[str, Any], list[FieldError]]:
    """The value of each setting that is given, with the contents of secret files, and the wrong variables.

    Args:
        given: the variables that are settings by their prefix.
        fields: the settings.
    """
    values: dict[str, Any] = {}
    problems: list[FieldError] = []
    for variable, value in sorted(given.items()):
        name = field_of(variable, fields)
        if name is None:
            problems.append(unknown(variable))
            continue
        if variable.upper() == PREFIX + name.upper():
            values[name] = value
        else:
            if name in values:
                problems.append(FieldError(variable, f"only one of it and {PREFIX}{name.upper()}"))
            try:
                values[name] = small_text(Path(value))
            except (OSError, ValueError) as error:
                problems.append(FieldError(variable, "a readable file", getattr(error, "strerror", None)))
                continue
        expected = setting_checks.wrong_text(
            values[name], may_be_empty=name in fields.lists, secret=name in fields.secrets
        )
        if expected is not None:
            problems.append(FieldError(variable, expected))
    return values, problems


def small_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file with a secret, without white space around it.

    A pipe is read until its writers are gone, and not at all if there is none: it may come from a shell's `<(...)`.

    Raises:
        OSError: it can't be read.
        ValueError: it is no text, or longer than any secret: a device, or a log, has no end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # the opening never waits for a writer
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        os.set_blocking(descriptor, True)
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"longer than {MOST_BYTES} bytes")
    return content.decode(encoding).strip()


def toml_text(path: Path, place: str) -> str:
    """The text of a TOML file that people write.

    Args:
        path: the file.
        place: what messages call it: the setting that names it and its path.

    Raises:
        ConfigurationError: it can't be read, is a device or a pipe, larger than 1 MiB, or not UTF-8.
    """
    try:
        content, size = read_regular(path, TOML_BYTES)
        if size > TOML_BYTES:
            raise ConfigurationError(f"{place}: expected at most {TOML_BYTES:,} bytes")
        return content.decode()
    except OSError as error:
        raise ConfigurationError(f"{place}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{place}: not TOML: not UTF-8 (at byte {error.start + 1:,})") from None


def without_secrets(text: str) -> str:
    """Return a value for display; a URL or a list of brokers may carry a login."""
    return redact(without_credentials(text) if "://" in text else text.rpartition("@")[2] if ":" in text else text)


def without_credentials(url: str) -> str:
    """Return `scheme://user:secret@host/...` as `scheme://***@host/...`."""
    scheme, separator, rest = url.partition("://")
    # A password may contain a slash or a question mark; a path without a host has no credentials.
    _, at, place = ("", "", rest) if rest.startswith("/") else rest.rpartition("@")
    return f"{scheme}{separator}{'***@' if at else ''}{place.partition('?')[0]}"
