"""Redaction: removes secrets from text before it is stored, logged, shown or used for training.

Known forms are removed: passwords and keys by name (`PASSWORD=...`, `api_key: ...`, `--token ...`), credentials in
URLs, Authorization headers and cookies, private key blocks, JSON web tokens, and the published token prefixes of AWS,
Google, GitHub, GitLab, Hugging Face, Slack, npm, Docker and OpenAI-like services. A secret becomes `[redacted]`; the
text around it stays, so that a line can still be understood. Redacting twice changes nothing more.

One pass searches all marker words at once; a pattern is tried only at a marker. Clean text costs that one pass. Every
pattern takes a bounded number of characters, so the cost is linear in the text.
"""

import re
from functools import cache, lru_cache
from typing import Any

from classifiers.literal_search import Literals

PLACEHOLDER = "[redacted]"

# A value after a name: quoted (also as escaped JSON) or up to white space or a separator.
_QUOTE = r"\\?[\"']"
_SEPARATOR = rf"(?:{_QUOTE})?[ \t]{{0,4}}(?P<sep>:=|=>|=|:)[ \t]{{0,4}}(?P<quote>{_QUOTE}|)"
_VALUE = r"(?P<secret>[^\s\"'\\,;&]{3,4096})"
_NAMED = _SEPARATOR + _VALUE
_REST_OF_NAME = {"secret": r"[\w.-]{0,40}", "token": r"(?:[_-](?:key|value|secret))?", "pwd=": "", "_key=": ""}

# Words in the place of a value that are no secret.
_NOT_A_SECRET = re.compile(
    r"(?i)(?:none|null|nil|true|false|undefined|unset|empty|missing|required|invalid|incorrect|expired|unknown|default"
    r"|not|no|yes|is|was|has|for|from|the|str|string|int|bytes|optional\W?.*|\*+|x{3,}|\.{3,}|<[^>]*>?|\[.*|\$\{?\w.*|%\w?.*)"
    r"[).\]:]*"
)
_SYMBOL = re.compile(r"[^\w.:/()\[\]-]")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")
_KEY_LIKE = re.compile(r"[A-Za-z0-9+/_=-]{24,}")

# Marker (lower case) -> pattern that begins with the marker. The group `secret` is removed.
_FORMS: dict[str, str] = {
    "akia": r"(?P<secret>AKIA[0-9A-Z]{16})\b",
    "asia": r"(?P<secret>ASIA[0-9A-Z]{16})\b",
    "ghp_": r"(?P<secret>ghp_[A-Za-z0-9]{20,255})",
    "gho_": r"(?P<secret>gho_[A-Za-z0-9]{20,255})",
    "ghu_": r"(?P<secret>ghu_[A-Za-z0-9]{20,255})",
    "ghs_": r"(?P<secret>ghs_[A-Za-z0-9]{20,255})",
    "ghr_": r"(?P<secret>ghr_[A-Za-z0-9]{20,255})",
    "github_pat_": r"(?P<secret>github_pat_\w{20,255})",
    "glpat-": r"(?P<secret>glpat-[\w-]{16,255})",
    "hf_": r"(?P<secret>hf_[A-Za-z0-9]{20,255})",
    "xox": r"(?P<secret>xox[abeoprs]-[\w-]{10,255})",
    "aiza": r"(?P<secret>AIza[\w-]{30,60})",
    "ya29.": r"(?P<secret>ya29\.[\w.-]{16,2048})",
    "sk-": r"(?P<secret>sk-[\w-]{20,255})",
    "npm_": r"(?P<secret>npm_[A-Za-z0-9]{30,255})",
    "dckr_pat_": r"(?P<secret>dckr_pat_[\w-]{16,255})",
    "dapi": r"(?P<secret>dapi[0-9a-f]{32})\b",
    "eyj": r"(?P<secret>eyJ[\w-]{8,4096}\.[\w-]{8,4096}(?:\.[\w-]{4,4096})?)",
    "hooks.slack.com/services/": r"(?i:hooks\.slack\.com/services/)(?P<secret>[\w/-]{8,255})",
    "bearer ": r"(?i:bearer) {1,4}(?P<secret>(?=[\w.~+/-]*\d)[\w.~+/=-]{12,4096})",
    "authorization": rf"(?i:authorization)(?:{_QUOTE})?[ \t]{{0,4}}[:=][ \t]{{0,4}}(?:{_QUOTE})?"
    r"(?:(?i:basic|bearer|token|digest|aws4-hmac-sha256) {1,4})?(?P<secret>[^\s\"'\\,]{6,4096})",
    "cookie:": r"(?i:cookie):[ \t]{0,4}(?P<secret>[^\r\n\"']{8,4096})",
    "://": r"://(?:[^\s/@:\"'<>?#]{0,256}:(?P<secret>[^\s/@\"'<>]{1,1024})@|(?P<secret2>[^\s/@:\"'<>?#]{16,1024})@)",
    "?sig=": r"(?i)\?sig=(?P<secret>[^\s&\"']{8,1024})",
    "&sig=": r"(?i)&sig=(?P<secret>[^\s&\"']{8,1024})",
    "signature=": r"(?i)signature=(?P<secret>[0-9a-zA-Z%/+=]{20,1024})",
    " password ": r"(?i) password +(?P<secret>(?=[^\s]*[\d!@#$%^&*])[^\s\"',.]{6,256})",
    "-----begin ": r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<secret>(?:[^-]|-(?!----)){1,65536})",
}
# Name of a secret -> whether a value of letters alone is a secret too.
_NAMES: dict[str, bool] = {
    "password": True,
    "passwd": True,
    "passphrase": True,
    "pwd=": True,
    "secret": False,
    "token": False,
    "api_key": False,
    "apikey": False,
    "api-key": False,
    "access_key": False,
    "accesskey": False,
    "accountkey": False,
    "account_key": False,
    "private_key": False,
    "credential": False,
    "_auth=": False,
    "_key=": False,
}
_FLAGS = ("--password", "--passwd", "--token", "--api-key", "--api_key", "--apikey", "--secret", "--auth-token")
_TOKEN_LEAST = 12  # characters; shorter values of these names are often words (judgement)
_TOKEN_MOST = 4096 + len("eyJ")
_RUN = re.compile(r"[\w-]*")
_MULTILINE_MARKER = "-----BEGIN "
_SECRET_NAME = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase)|secret|(?:^|[_\W])(?:token|auth|pwd)|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|account[_-]?key|credentials?|authorization|cookie)\s*$"
)


class _Finder:
    """All markers in one automaton, each with its pattern."""

    def __init__(self) -> None:
        self.markers = [*_FORMS, *_NAMES, *_FLAGS]
        self.web_token = self.markers.index("eyj")
        self.literals = Literals(self.markers)
        patterns = [re.compile(form) for form in _FORMS.values()]
        patterns += [
            re.compile(rf"(?i:{re.escape(name.rstrip('='))}){_REST_OF_NAME.get(name, '[_-]?[a-z]{0,8}')}{_NAMED}")
            for name in _NAMES
        ]
        patterns += [
            re.compile(rf"(?i:{re.escape(flag)})[ =]{_QUOTE}?(?P<secret>[^\s\"']{{4,4096}})") for flag in _FLAGS
        ]
        self.patterns = patterns

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The spans of secrets, in order, not overlapping."""
        low = text.lower()
        if len(low) != len(text):  # some letters get longer in lower case: positions would not agree
            low = "".join(one if len(one.lower()) != 1 else one.lower() for one in text)
        found: list[tuple[int, int]] = []
        seen: dict[int, int] = {}  # marker -> end of the last value read: markers inside it are skipped
        dotless = 0  # end of a run of letters without a dot within a token's length: no web token begins in it
        for index, start, _ in self.literals.find(low):
            if start < seen.get(index, 0) or (index == self.web_token and start < dotless):
                continue
            hit = self.patterns[index].match(text, start)
            if hit is None:
                if index == self.web_token:
                    run = _RUN.match(text, start)
                    end = run.end() if run is not None else start
                    dotless = end if text[end : end + 1] != "." else max(end - _TOKEN_MOST, start)
                continue
            seen[index] = hit.end()
            span = _secret_span(self.markers[index], hit, text)
            if span is not None:
                found.append(span)
        found.sort()
        merged = found[:1]
        for begin, end in found[1:]:
            if begin < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        return merged


def _secret_span(marker: str, hit: re.Match[str], text: str) -> tuple[int, int] | None:
    """The span of the secret in the match of a marker's pattern, None if it is ordinary text."""
    group = "secret" if hit["secret"] is not None else "secret2"
    value = hit[group]
    if value.startswith(PLACEHOLDER) or _NOT_A_SECRET.fullmatch(value):
        return None
    start = hit.start()
    if marker in _NAMES:
        if not _is_secret_value(marker, value, by_colon=hit["sep"] == ":" and not hit["quote"]):
            return None
    elif marker in _FORMS and marker[0].isalpha() and start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return None  # the middle of a longer word
    return hit.start(group), hit.end(group)


def _has_mixed_characters(value: str) -> bool:
    return _SYMBOL.search(value) is not None or (_DIGIT.search(value) is not None and _LETTER.search(value) is not None)


def _is_secret_value(marker: str, value: str, *, by_colon: bool) -> bool:
    if value.startswith(("<", "[", "{", "(")):
        return False
    if marker == "_key=":
        return _KEY_LIKE.fullmatch(value) is not None and _has_mixed_characters(value) and value != value.lower()
    if _NAMES[marker]:
        return not by_colon or len(value) >= _TOKEN_LEAST or _has_mixed_characters(value)
    return _has_mixed_characters(value) and len(value) >= (
        _TOKEN_LEAST if marker in {"token", "credential"} or by_colon else 6
    )


@cache
def _finder() -> _Finder:
    return _Finder()


def redact(text: str) -> str:
    """The text with each secret replaced by `[redacted]`; the same object where none was found."""
    spans = _finder().spans(text)
    if not spans:
        return text
    parts: list[str] = []
    done = 0
    for begin, end in spans:
        parts += (text[done:begin], PLACEHOLDER)
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
    return _MULTILINE_MARKER in whole or bool(_finder().spans(whole))


def _collect_strings(value: Any, texts: list[str]) -> bool:
    """Add every string of a value to `texts`; False if a field has the name of a secret."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict):
        for key, one in value.items():
            if isinstance(key, str):
                if _is_secret_name(key) and isinstance(one, str) and one:
                    return False
                texts.append(key)
            if isinstance(one, str):
                texts.append(one)
            elif one is not None and not _collect_strings(one, texts):
                return False
    elif isinstance(value, list | tuple):
        return all(_collect_strings(one, texts) for one in value)
    return True


@lru_cache(maxsize=4096)
def _is_secret_name(key: str) -> bool:
    return _SECRET_NAME.search(key) is not None


def redact_json(value: Any) -> Any:
    """A JSON-like value without secrets in strings, field names included: `{"password": "x"}` is redacted too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {
            redact(key) if isinstance(key, str) else key: PLACEHOLDER
            if isinstance(key, str) and isinstance(one, str) and one and _is_secret_name(key)
            else redact_json(one)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [redact_json(one) for one in value]
    if isinstance(value, tuple):
        return tuple(redact_json(one) for one in value)
    return value
