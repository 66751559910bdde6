"""What a value looks like that stands where a secret may stand: a secret, a word, a place or code."""

import re
from typing import Final

# Words in the place of a value that are no secret.
_NOT_A_SECRET: Final = re.compile(
    r"(?i)(?:none|null|nil|true|false|undefined|unset|empty|missing|required|invalid|incorrect|unauthori[sz]ed|expired|unknown|default"
    r"|not(?:[ _-]?(?:set|configured|found|provided|required|given|needed|available|specified))?"
    r"|no|yes|is|was|has|for|from|the|pass(?:word|wd)?|redacted|filtered|masked|hidden|removed|scrubbed|omitted|str|string|int|bytes|optional\W?.*|\*+|x{3,}|\.{3,}|<[^>]*>?|\[.*|arn:.*|\$[{(]?\w(?:(?!:-\w).)*|%\w?.*)"
    r"[).\]:]*"
)
# The name of a secret in the place of its value, as in a help text: `--api-key API_KEY`, `your-token-here`; a field of
# a template: `{password}`, `%(token)s`, `@DB_PASSWORD@`; and what hides the login in an address.
_NAME: Final = (
    "(?:PASS(?:WORD|WD|PHRASE)?|PWD?|TOKEN|SECRET|(?:API|ACCESS|SECRET)?KEY|CREDENTIALS?|PAT|TEXT|STRING|VALUE)"
)
_STANDS_FOR_VALUE: Final = re.compile(
    rf"(?:[A-Z0-9]{{1,20}}[_-]){{0,4}}{_NAME}(?:[_-](?:HERE|ID|VALUE|GOES|TEXT))*[)\].,:;]*"
    rf"|(?i:(?:your|insert|enter|replace|paste)[-_ ](?:[a-z0-9]{{1,20}}[-_ ]){{0,5}}(?:{_NAME}|here|it|this))"
    r"|\{\{?[^{}]{0,200}\}?\}|\{\{.*|\$\{\{.*|@[A-Z_]+@|__[A-Z_]+__|[\w-]{0,12}(?:\.{3,}|\*{3,})[\w-]{0,6}|(?:\*{3,}|x{4,}|<[^<>]*>)@.*"
)
_FIRST: Final = frozenset("{$@_*x<yYiIeErRpP")  # with which others of these begin
_MASK: Final = re.compile("([*\u2022\u00b7\u25cf\u2219\u2026xX#?])\\1{2,}")
_SHOWN_MOST: Final = 12  # characters of a masked value that are shown
LEAST: Final = 6  # characters of a secret
LETTERS_LEAST: Final = 16  # the same, of a secret of letters alone
_WORD_LEAST: Final = 8  # the same, of letters and digits where no sign assigns it
TOKEN_LEAST: Final = 12  # characters; shorter values of these names are often words (judgement)
HEXADECIMAL_KEY: Final = re.compile("[a-f0-9]{32,128}|[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}")

_PLACE: Final = re.compile(
    r"(?:~|\.{0,2})/(?:etc|var|run|root|home|mnt|data|opt|usr|tmp|dev|proc|sys|secrets?|srv|app|work\w*|scratch|lustre|nfs"
    r"|fsx|gpfs|shared|projects?|users?|Users|Volumes)(?:/[\w./@+-]*)?"
)
_ANY_PLACE: Final = re.compile(r"(?:~|[A-Za-z]:)?[/\\][^\s]*")
# What a line of a program assigns: a call, an element or an attribute.
_CODE: Final = re.compile(
    r"[A-Za-z_][\w.]{2,60}[(\[][\w.,=:+*(){}\[\]-]*"
    r"|(?:self|cls|os|process|args|kwargs|cfg|config|conf|settings|options?|opts|params?|url|request|parsed\w{0,20}|var|local|module|data"
    r"|each|env|secrets|vars|inputs|steps|values)\.[\w.-]+"
)
_SYMBOL: Final = re.compile(r"[^\w.:/()\[\]-]")
# Letters and a sign as a password has it, between them: with no digit, other signs stand in mail, code and prose.
_SIGN_INSIDE: Final = re.compile(
    r"(?=[^a-z]{0,255}[a-z])(?=[^A-Z]{0,255}[A-Z])[^\s/\\]{0,255}[^\s/\\!#$%^*~][!#$%^*~][^\s/\\!#$%^*~][^\s/\\]{0,255}"
)
_SMALL_THEN_CAPITAL: Final = re.compile("[a-z][A-Z]")
_SMALL: Final = re.compile("[a-z]+")
_SMALL_LEAST: Final = 3.5  # small letters in a row, on average: 1.7 in random text
_DIGIT: Final = re.compile(r"\d")
_LETTER: Final = re.compile(r"[^\W\d_]")
_KEY_LIKE: Final = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
PARTS: Final = re.compile("[-_]")
PART_LEAST: Final = 7  # characters; parts of random text between two such signs are 32 on average
_RANDOM: Final = re.compile(
    r"(?=[A-Za-z0-9+/=]{0,79}\d)(?=[A-Za-z0-9+/=]{0,79}[A-Za-z])[A-Za-z0-9+][A-Za-z0-9+/=]{19,199}"
    r"|(?=[\w-]{0,79}\d)(?=[\w-]{0,79}[a-z])(?=[\w-]{0,79}[A-Z])(?!_Z)[A-Za-z0-9_][\w-]{19,199}"
)
_WORD_OR_HASH: Final = re.compile(r"[A-Z]?[a-z]*[A-Z]{0,3}\d{0,4}|[A-Z]+\d{0,4}|[0-9a-f]+")
# A measure, a version, an address of a machine, a call or a place.
_MEASURE: Final = re.compile(
    r"[-+]?[\d.,:/x%e+-]+ ?[A-Za-z%/]{0,4}|v?\d+(?:\.\w+)+|[\w.-]+:\d{1,5}|[\w.]+\(.*|\w+://.*|[\w.-]*/[\w./-]*|\w+\[.*"
)


def is_no_secret(value: str) -> bool:
    """Whether a value stands for a secret that is not shown: a word, a name, a field of a template or a mask."""
    if _NOT_A_SECRET.fullmatch(value) is not None or is_masked(value):
        return True
    may_stand = value.isupper() or value[:1] in _FIRST or ".." in value or "**" in value
    return may_stand and _STANDS_FOR_VALUE.fullmatch(value) is not None


def is_masked(value: str) -> bool:
    """Whether at least half of a value is a mask, as in `hf_xxxxxxxxxxxx` and `sk-****1234`."""
    if 2 * (len(set(value)) - 1) > len(value) or _MASK.search(value) is None:
        return False
    shown = len(_MASK.sub("", value))
    return shown <= _SHOWN_MOST and 2 * shown <= len(value)


def is_code(value: str) -> bool:
    """Whether a bare value is a call, an element or an attribute of a program."""
    return ("." in value or "(" in value or "[" in value) and _CODE.fullmatch(value) is not None


def is_place(value: str) -> bool:
    """Whether a value is a file or a folder in one of the usual places."""
    return "/" in value and _PLACE.fullmatch(value) is not None


def is_directory(value: str) -> bool:
    """Whether a value may be a working directory: any absolute path."""
    return _ANY_PLACE.fullmatch(value) is not None


def is_measure(value: str) -> bool:
    """Whether a value is a number, a version, an address of a machine, a call or a path."""
    return _MEASURE.fullmatch(value) is not None


def has_mixed_characters(value: str) -> bool:
    """Whether a value has a symbol, letters and digits, or capitals as random letters have them."""
    if _SYMBOL.search(value) is not None or (_DIGIT.search(value) is not None and _LETTER.search(value) is not None):
        return True
    # Letters alone: words begin with capitals, in random letters every fourth pair is a small one and a capital.
    return len(value) >= LETTERS_LEAST and len(_SMALL_THEN_CAPITAL.findall(value)) > len(value) / 6


def has_symbol(value: str) -> bool:
    """Whether a value has a character that names, numbers, paths and calls have not."""
    return _SYMBOL.search(value) is not None


def has_random_case(value: str) -> bool:
    """Whether a short value of letters alone is random: capitals stand in it as in no word or name."""
    pairs = len(_SMALL_THEN_CAPITAL.findall(value)) if len(value) >= _WORD_LEAST and value.isalpha() else 0
    return pairs > max(len(value) / 6, 1) and not is_camel_case(value)


def is_password(value: str) -> bool:
    """Whether a value that a sign assigns to the name of a password is no word."""
    is_number = value.isdigit() and len(value) >= LEAST
    return is_number or has_mixed_characters(value) or has_random_case(value)


def is_camel_case(value: str) -> bool:
    """Whether the small letters of a value stand in words, as in `V1beta2DeviceClass`."""
    small = _SMALL.findall(value)
    return value != value.lower() and sum(map(len, small)) >= _SMALL_LEAST * max(len(small), 1)


def is_random(value: str) -> bool:
    """Whether a value is random text of at least 20 characters, with digits."""
    return _RANDOM.fullmatch(value) is not None and not _is_name(value) and not is_camel_case(value)


def is_key(value: str) -> bool:
    """Whether a value is random text that is no hash: of small letters and capitals."""
    if value in {value.lower(), value.upper()} or _is_name(value) or is_camel_case(value) or _has_hash(value):
        return False
    return _KEY_LIKE.fullmatch(value) is not None and has_mixed_characters(value)


def looks_like_password(value: str) -> bool:
    """Whether a value is one word of letters and digits that is no measure, version, place or code."""
    if " " in value or _LETTER.search(value) is None or is_measure(value):
        return False
    if _DIGIT.search(value) is None:
        return len(value) >= _WORD_LEAST and _SIGN_INSIDE.fullmatch(value) is not None
    return len(value) >= (LEAST if _SYMBOL.search(value) else _WORD_LEAST)


def looks_like_token(value: str) -> bool:
    """Whether a value is random text, or a word of letters, digits and a symbol as no name has it."""
    if is_random(value) or HEXADECIMAL_KEY.fullmatch(value):
        return True
    return len(value) >= TOKEN_LEAST and _SYMBOL.search(value) is not None and looks_like_password(value)


def _has_hash(value: str) -> bool:
    """Whether a value is made of words and a hash, as the key of a cache is: `Linux-node-bc44ec6f0d94b104d1d624f8`."""
    parts = PARTS.split(value)
    return len(parts) > 1 and all(_WORD_OR_HASH.fullmatch(part) for part in parts)


def _is_name(value: str) -> bool:
    """Whether a value is made of short parts, as the names of models and runs are: `ViT-Large-Patch16-224`."""
    return len(value) < PART_LEAST * len(PARTS.split(value))
