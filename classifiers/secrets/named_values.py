"""Secrets that follow their name: `PASSWORD=...`, `"api_key": "..."`, `--hub_token ...`, `name: HF_TOKEN, value: ...`.

A pattern finds the name, a separator and a value; then the separator, the rest of the name and the value decide whether
it is a secret: `password_policy: strict`, `token=None` and `PWD=/scratch/run1` are none.
"""

import re
from typing import Final

# Words in the place of a value that are no secret.
NOT_A_SECRET: Final = re.compile(
    r"(?i)(?:none|null|nil|true|false|undefined|unset|empty|missing|required|invalid|incorrect|expired|unknown|default"
    r"|not|no|yes|is|was|has|for|from|the|str|string|int|bytes|optional\W?.*|\*+|x{3,}|\.{3,}|<[^>]*>?|\[.*|\$[{(]?\w(?:(?!:-\w).)*|%\w?.*)"
    r"[).\]:]*"
)
# Name -> whether a value of letters alone is a secret too.
NAMES: Final[dict[str, bool]] = {
    "password": True,
    "passwd": True,
    "passphrase": True,
    "passcode": True,
    "pass_phrase": True,
    "pass-phrase": True,
    "passwort": True,
    "pwd=": True,
    "pwd =": False,
    "pass=": False,
    "pass =": False,
    "secret": False,
    "token": False,
    "api_key": False,
    "apikey": False,
    "api-key": False,
    "access_key": False,
    "access-key": False,
    "accesskey": False,
    "accountkey": False,
    "account_key": False,
    "account-key": False,
    "private_key": False,
    "signing_key": False,
    "auth_key": False,
    "auth-key": False,
    "authkey": False,
    "auth=": False,
    "api key": False,
    "access key": False,
    "app_key": False,
    "integration_key": False,
    "integration-key": False,
    "wandb_key": False,
    "wandb-key": False,
    "_pass:": False,
    '_pass"': False,
    "pw=": False,
    "pw:": False,
    "mot de passe": True,
    "contrase": True,
    "application-key": False,
    "application_key": False,
    "account.key": False,
    "private-key": False,
    "privatekey": False,
    "_pat=": False,
    "_pat:": False,
    "encryption_key": False,
    "master_key": False,
    "license_key": False,
    "subscription-key": False,
    "credential": False,
    "creds": False,
    "_auth": False,
    "_key=": False,
    "_key:": False,
    '_key"': False,
    "-key=": False,
    "-key:": False,
    "-key ": False,
}
_PASSWORDS: Final = frozenset({"password", "passwd", "passphrase", "passcode", "passwort"})
_BARE_KEYS: Final = frozenset({"_key=", "_key:", '_key"', "-key=", "-key:", "-key "})
_LONG: Final = frozenset({"token", "credential", "creds", "_auth", "pass =", "_pat=", "_pat:", "auth="})
_LEAST: Final = 6  # characters of a secret
_TOKEN_LEAST: Final = 12  # characters; shorter values of these names are often words (judgement)

# Colours, as bytes of a terminal or escaped in JSON and Python.
STYLE: Final = r"(?:(?:\x1b|\\x1b|\\u001b|\\033)\[[\d;]{0,12}m){0,3}"
_QUOTE: Final = r"(?:\\{0,7}[\"']|&quot;|%22|\\u0022)"
_SPACE: Final = r"[ \t\xa0\u200b-\u200d\ufeff]"
# Name -> what may stand between it and the sign.
_REST: Final = {
    "secret": r"[\w.-]{0,40}",
    "token": r"(?i:[_-][a-z0-9]{1,16})?",
    "account.key": r"[\w.-]{0,100}",
    "credential": r"(?i:s?[_-]?[a-z0-9]{0,8})",
    "contrase": "\u00f1a",
}
_SEPARATORS: Final = (
    r",?(?:\s|\\n){0,60}\\{0,7}[\"']?value\\{0,7}[\"']?\s{0,2}[:=]",  # name: WANDB_API_KEY, value: ...
    r":=|=>|=|::?|\uff1a|\uff1d|%3[AaDd]",
    rf"(?<=[\"']),(?={_SPACE}{{0,4}}\\{{0,7}}[\"'])",  # ('api_key', '...'), ["--password", "..."]
    r">(?=[^<\s]{3,200}</)",
    r"[ \t]?\.{3,80}[ \t]",  # printed arguments: api_key ......... x
    r"[ \t]{0,40}[|│┃][ \t]{1,40}",
    r"[ \t]{1,4}",
)
# A value on the next line: after a backslash, or indented in YAML.
_NEXT_LINE: Final = r"(?P<line>(?:[|>][-+]?)?[ \t]{0,4}(?:\\\r?\n[ \t]{0,40}|\r?\n[ \t]{1,40}))?"
_SEPARATOR: Final = (
    rf"{_QUOTE}?(?P<index>\]?){STYLE}{_SPACE}{{0,4}}{STYLE}(?P<sep>{'|'.join(_SEPARATORS)})"
    rf"{_SPACE}{{0,4}}{STYLE}{_NEXT_LINE}"
)
# SecretStr('...'), b"...", $'...', and YAML's !!str and &anchor
_PREFIX: Final = r"(?:(?:!!?|&)\w{1,20} )?(?:(?:\w{0,20}(?:Str|Bytes|Secret)\()?(?:[bBrRuU]{1,2}|\$)?(?=[\"']))?"
# An escaped line end ends a value: a quote that is never closed would hide the lines after it.
_VALUE: Final = (
    r"(?:(?:\"\"\"|''')(?P<secret>[^\"'\n]{3,4096})"
    r"|\\{1,7}\"(?P<secret1>[^\"\n\\]{3,4096})"
    r"|\\{1,7}'(?P<secret2>[^'\n\\]{3,4096})"
    r"|\"(?P<secret3>(?:[^\"\n\\]|\\[^\nnr]){3,4096})"
    r"|'(?P<secret4>(?:[^'\n\\]|\\[^\nnr]){3,4096})"
    r"|(?:&quot;|%22|\\u0022)(?P<secret5>[^\s\"'\\,;&%]{3,4096})"
    r"|(?P<bare_secret>(?:[^\s\"'\\,;&]|\\u(?!00[0-2])[0-9a-fA-F]{4}){3,4096}))"
)
_BARE: Final = "bare_secret"

_HARMLESS_WORDS: Final = (
    r"polic(?:y|ies)|required|less|files?|paths?|dir|name|ref|type|enabled|disabled|length|len|size|reset|store"
    r"|provider|class|version|expir(?:y|es|ed|ation)|ttl|age|count|hint|field|prompt|manager|mode|helper|rules?|format|stdin|fd|env"
)
_HARMLESS_NAME: Final = re.compile(
    rf"(?i)(?:.*[_.-]|s)?(?:{_HARMLESS_WORDS})\Z|.*(?-i:[a-z](?:Name|Ref|File|Path|Type|Class))\Z"
)
_PLACE: Final = re.compile(
    r"(?:~|\.{0,2})/(?:etc|var|run|root|home|mnt|data|opt|usr|tmp|dev|proc|sys|secrets?|srv|app|work\w*|scratch|lustre|nfs"
    r"|fsx|gpfs|shared|projects?|users?|Users|Volumes)(?:/[\w./@+-]*)?"
)
_ANY_PLACE: Final = re.compile(r"(?:~|[A-Za-z]:)?[/\\][^\s]*")
# What a line of a program assigns: a call, an element or an attribute.
_CODE: Final = re.compile(
    r"[A-Za-z_][\w.]{2,60}[(\[][\w.,=:+*(){}\[\]-]*"
    r"|(?:self|cls|os|args|kwargs|cfg|config|conf|settings|options?|opts|params?|url|request|parsed\w{0,20})\.[\w.]+"
)
_FLAG: Final = re.compile(r"(?<![\w-])--[\w.-]{0,40}\Z")
_ASSIGNING_COMMAND: Final = re.compile(r"(?:\bsetenv|\bsetx|\bENV|\bset -[gxU]{1,3}) {1,4}[\w.]{0,60}\Z")
_SYMBOL: Final = re.compile(r"[^\w.:/()\[\]-]")
_LETTERS_LEAST: Final = 16
_SMALL_THEN_CAPITAL: Final = re.compile("[a-z][A-Z]")
# A variable of the environment such as `VASTAI_KEY`; hashes are often the keys of caches and of data.
_NAME_OF_VARIABLE: Final = re.compile(
    r"(?:^|[^\w])(?!\w{0,60}(?:CACHE|PUBLIC|PARTITION|SORT|PRIMARY|FOREIGN|HASH|DEDUP\w{0,8}|IDEMPOTENCY|RUN|OBJECT|FILE|DATA|S3)_KEY)"
    r"[A-Z][A-Z0-9_]{1,60}_KEY\Z"
)
_HEXADECIMAL_KEY: Final = re.compile("[a-f0-9]{32,128}|[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}")
_DIGIT: Final = re.compile(r"\d")
_LETTER: Final = re.compile(r"[^\W\d_]")
_KEY_LIKE: Final = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_PARTS: Final = re.compile("[-_]")
_PART_LEAST: Final = 7  # characters; parts of random text between two such signs are 32 on average
_RANDOM: Final = re.compile(
    r"(?=[A-Za-z0-9+/=]{0,79}\d)(?=[A-Za-z0-9+/=]{0,79}[A-Za-z])[A-Za-z0-9][A-Za-z0-9+/=]{19,199}"
    r"|(?=[\w-]{0,79}\d)(?=[\w-]{0,79}[a-z])(?=[\w-]{0,79}[A-Z])[A-Za-z0-9][\w-]{19,199}"
)


def pattern_of(name: str) -> str:
    """The regular expression of a name with its value.

    Groups: `rest` of the name, `sep`, and the value in one whose name has `secret` in it.
    """
    rest = _REST.get(name, "" if name[-1] in '=:" ' else "(?i:[_-]?[a-z0-9]{0,8})")
    return rf"(?i:{re.escape(name.rstrip('=: ' + chr(34)))})(?P<rest>{rest}){_SEPARATOR}{_PREFIX}{_VALUE}"


def is_secret_value(marker: str, hit: re.Match[str], group: str, text: str) -> bool:
    """Whether a value is a secret.

    Args:
        marker: the name, a key of NAMES.
        hit: a match of its pattern.
        group: the group of the value.
        text: the text that was searched.
    """
    value, separator, bare = hit[group], hit["sep"], group == _BARE
    if value.startswith(("<", "[", "{", "(")) or _is_harmless(marker, hit, text):
        return False
    if bare and (hit["index"] or _CODE.fullmatch(value)):
        return False
    is_directory = marker.startswith("pwd") and text[hit.start() - 1 : hit.start()] != ";"  # PWD=/scratch/run1
    if _PLACE.fullmatch(value) or (is_directory and _ANY_PLACE.fullmatch(value)):
        return False
    if hit["line"]:
        is_block = hit["line"].startswith(("|", ">"))  # of YAML
        return bare and (
            (is_block and _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=True))
            or _is_random(value)
        )
    if separator == "," or not separator.strip(" \t.|│┃"):
        return _is_secret_after_space(marker, hit, value, text, bare=bare)
    return _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=separator in {":", "::"} and bare)


def _is_harmless(marker: str, hit: re.Match[str], text: str) -> bool:
    """Whether the whole name is one of something else than the secret, such as `password_policy`."""
    if _HARMLESS_NAME.match(hit["rest"]):
        return True
    return marker == "secret" and text[max(hit.start() - 4, 0) : hit.start()].lower() == "pull"  # imagePullSecrets


def _is_secret_after_space(marker: str, hit: re.Match[str], value: str, text: str, *, bare: bool) -> bool:
    """Without a sign between name and value: arguments of commands, quoted passwords, and random values."""
    separator = hit["sep"].strip(" \t.")
    if separator in {"", ","} and _FLAG.search(text, max(hit.start() - 42, 0), hit.start()):
        return not value.startswith("-") and _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=False)
    if _ASSIGNING_COMMAND.search(text, max(hit.start() - 80, 0), hit.start()):
        return _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=False)
    set_apart = not bare or separator or "\t" in hit["sep"]  # quoted, or in a table
    if set_apart and marker in _PASSWORDS and len(value) >= _LEAST and _SYMBOL.search(value) and _DIGIT.search(value):
        return " " not in value
    return _is_random(value)


def _is_assigned_secret(marker: str, name: str, value: str, *, by_colon: bool) -> bool:
    """Whether a value after a sign is a secret; `name` is the text up to the value."""
    if marker in _BARE_KEYS:
        if value == value.lower():
            return _HEXADECIMAL_KEY.fullmatch(value) is not None and _NAME_OF_VARIABLE.search(name) is not None
        if _is_name(value):
            return False
        return _KEY_LIKE.fullmatch(value) is not None and _has_mixed_characters(value)
    if NAMES[marker]:
        return not by_colon or len(value) >= _TOKEN_LEAST or _has_mixed_characters(value)
    least = _TOKEN_LEAST if marker in _LONG or by_colon else _LEAST
    return _has_mixed_characters(value) and len(value) >= least


def _has_mixed_characters(value: str) -> bool:
    if _SYMBOL.search(value) is not None or (_DIGIT.search(value) is not None and _LETTER.search(value) is not None):
        return True
    # Letters alone: words begin with capitals, in random letters every fourth pair is a small one and a capital.
    return len(value) >= _LETTERS_LEAST and len(_SMALL_THEN_CAPITAL.findall(value)) > len(value) / 6


def _name_before(hit: re.Match[str], text: str) -> str:
    """The text of a name, and what stands before it: at most 64 characters."""
    end = hit.end("rest")
    return text[max(end - 64, 0) : end]


def _is_random(value: str) -> bool:
    return _RANDOM.fullmatch(value) is not None and not _is_name(value)


def _is_name(value: str) -> bool:
    """Whether a value is made of short parts, as the names of models and runs are: `ViT-Large-Patch16-224`."""
    return len(value) < _PART_LEAST * len(_PARTS.split(value))
