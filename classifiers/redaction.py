"""Redaction: removes secrets from text before it is stored, logged, shown or used for training.

Known formats are removed: passwords and keys by name (`PASSWORD=...`, `api_key: ...`, `--token ...`), arguments of
commands (`docker login -p ...`), credentials in URLs, Authorization headers and cookies, private keys, JSON web
tokens, credentials in files of tools, and the tokens of `classifiers/data/secrets`, also in base64. Random words that
have the shape of a key are removed too. A secret becomes `[redacted]`; the text around it stays, so that a line can
still be understood. Redacting twice changes nothing more.

One pass searches all marker words at once, another one long words; a pattern is tried only there. Clean text costs
these passes. Every pattern takes a bounded number of characters, so the cost is linear in the text.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from classifiers.secrets.finder import PLACEHOLDER, SearchBudget, SecretFinder

_MULTILINE_MARKER = "-----BEGIN "
_SECRET_NAME = re.compile(
    r"(?:(?i:pass(?:word|wd|_?phrase)|secret|(?:^|[_\W])(?:token|auth|pwd|pw)|[_\W](?:pass|pat)"
    r"|(?:bind|root|db|user|admin)(?:pw|pass)|authtok|credentials?|authorization"
    r"|cookies?|(?:api|access|private|account|secret|signing|encryption|master|license|auth|app|integration)[_-]?key)"
    r"|[a-z0-9](?:Token|Auth|Pwd|Pass))\s*$"
)
_USERS = frozenset({"user", "username", "login"})


@cache
def _finder() -> SecretFinder:
    return SecretFinder()


def redact(text: str, budget: SearchBudget | None = None) -> str:
    """The text with each secret replaced by `[redacted]` and its line ends; the same object where none was found.

    Args:
        text: the text.
        budget: shared by all texts of an event; when it is spent, further texts are removed unread. Default: that of
            one text.
    """
    spans = _finder().spans(text, budget=budget)
    if not spans:
        return text
    parts: list[str] = []
    done = 0
    for begin, end in spans:
        parts += (text[done:begin], PLACEHOLDER, "\n" * text.count("\n", begin, end))  # line numbers do not change
        done = end
    parts.append(text[done:])
    return "".join(parts)


def has_secret(value: Any) -> bool:
    """Whether `redact_json` may change a JSON-like value, by one pass over all its strings together.

    May be true of a value without a secret.
    """
    texts: list[str] = []
    if not _collect_strings(value, texts):
        return True
    whole = "\n".join(texts)
    # A form of several lines could begin in one string and end in the next.
    return _MULTILINE_MARKER in whole or _finder().is_in(whole)


def _collect_strings(value: Any, texts: list[str]) -> bool:
    """Add every string of a value to `texts`; False if a field has the name of a secret."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict):
        for key, one in value.items():
            if isinstance(key, str):
                if isinstance(one, str) and one and _is_secret_name(_name_of(value, key)):
                    return False
                texts.append(key)
            if isinstance(one, str):
                texts.append(one)
            elif one is not None and not _collect_strings(one, texts):
                return False
    elif isinstance(value, list | tuple):
        return not any(_secret_arguments(value)) and all(_collect_strings(item, texts) for item in value)
    return True


def _secret_arguments(values: list[Any] | tuple[Any, ...]) -> Iterator[int]:
    """The places of arguments that follow the flag of a secret, as in `["--token", "x"]`."""
    for place, (flag, one) in enumerate(pairwise(values), start=1):
        is_pair = isinstance(flag, str) and isinstance(one, str) and flag.startswith("-") and not one.startswith("-")
        if is_pair and one and _is_secret_name(flag):
            yield place


@lru_cache(maxsize=4096)
def _is_secret_name(key: str) -> bool:
    return _SECRET_NAME.search(key) is not None


def _name_of(fields: dict[Any, Any], key: str) -> str:
    """The name of a field's value: of `value` in `{"name": "API_KEY", "value": "x"}`, as in a container, the other.

    `pass` is short for password beside a user.
    """
    if key == "pass" and not _USERS.isdisjoint(fields):
        return "password"
    name = fields.get("name") if key == "value" else None
    return name if isinstance(name, str) else key


def redact_json(value: Any, budget: SearchBudget | None = None) -> Any:
    """A JSON-like value without secrets in strings, field names included: `{"password": "x"}` is redacted too.

    Args:
        value: the value.
        budget: as of `redact`; default: one for the whole value.
    """
    budget = budget or SearchBudget()
    if isinstance(value, str):
        return redact(value, budget)
    if isinstance(value, dict):
        return {
            redact(key, budget) if isinstance(key, str) else key: PLACEHOLDER
            if isinstance(key, str) and isinstance(one, str) and one and _is_secret_name(_name_of(value, key))
            else redact_json(one, budget)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        hidden = set(_secret_arguments(value))
        clean = [PLACEHOLDER if place in hidden else redact_json(one, budget) for place, one in enumerate(value)]
        return clean if isinstance(value, list) else tuple(clean)
    return value
