"""Secrets of formats that nobody listed: long random words, found by their shape and by what stands before them.

Random letters and digits change between small letters, capitals and digits at every second character; words, the names
of models and the symbols of programs do not. Such a word is a secret unless its prefix or the text before it says that
it is a hash, an id, or a part of a file or path. A short one needs a prefix, as services give their keys, or a word of
logins before it; one of hexadecimal digits, as hashes are, needs a prefix with an underscore, or both.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from classifiers.secrets.formats import known_words
from classifiers.secrets.values import PART_LEAST, PARTS, is_camel_case

Kind = Literal["mixed", "one case", "hexadecimal"]

_LEAST: Final = 20  # characters of a word
_MOST: Final = 4096  # characters of a word that are looked at; a longer one is no key
_BEFORE: Final = 100  # characters before a word in which a word of logins is looked for
_NEAR: Final = 24  # the same, for what says that a word is a hash or an id
_WRAPPED: Final = 60  # characters; a line of nothing but such a word is one of a certificate, an image or a file

# Shortest random pieces: letters and digits in a row.
_RANDOM_LEAST: Final = 16
_ALONE_LEAST: Final = 28  # without a prefix or a word of logins; ids of requests and of files are shorter
_ONE_CASE_LEAST: Final = 24
_HEXADECIMAL_LEAST: Final = 32
# Characters of one kind in a row, at most on average.
_MIXED_RATE: Final = 2.2  # 1.6 in random text, 3 and more in words
_PREFIXED_RATE: Final = 2.6  # the same after a prefix
_ONE_CASE_RATE: Final = 4.2  # 2.5 in random text

_WORD_CHARACTERS: Final = bytes(
    ord("a") if chr(code).isascii() and (chr(code).isalnum() or chr(code) in "_-.") else ord(" ") for code in range(256)
)
_LONG: Final = b"a" * _LEAST
_DIGIT_AND_LETTER: Final = re.compile(r"[0-9][A-Za-z]|[A-Za-z][0-9]")
_PIECE: Final = re.compile(r"[A-Za-z0-9]{12,}")
_CHANGES: Final = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_CASE_CHANGE: Final = re.compile(r"[a-z][0-9]*(?=[A-Z])|[A-Z][0-9]*(?=[a-z])")
_DIGIT: Final = re.compile(r"[0-9]")
_HEXADECIMAL: Final = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_HEXADECIMAL_KEY: Final = re.compile(r"_[0-9a-fA-F]{32,}(?:[_-][0-9a-zA-Z]{1,40})?\Z")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_COLOUR: Final = re.compile(r"\d{1,3}m")
_REST_OF_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{0,512}={0,2}")
_WORD_OF_PATH: Final = re.compile(r"(?:^|/)[a-z._-]{4,}(?:/|\Z)")
# Letters of one case: mixed ones before such a sign are random themselves, as in an id in base64.
_PREFIX: Final = re.compile(r"(?:[a-z][a-z0-9]{1,11}|[A-Z][A-Z0-9]{1,11}|[A-Z][a-z]{2,11})[_.-]")
# Ids of requests, answers, jobs and files.
_ID_PREFIX: Final = re.compile(
    r"(?i)(?:chatcmpl|cmpl|resp|req|request|msg|call|batch|run|job|task|file|step|trace|span|raysubmit|shard|ckpt"
    r"|checkpoint|image|img|node|pod|worker|actor|exp|experiment|cache|hash|sha\d*|md5|blob|layer|commit|build|gpu|mig"
    r"|tmp|linux|conda|pip|model|train|data|dataset|version|v\d*|nonce)[_-]"
)
# Ids of objects of OpenAI, Anthropic, Modal and Stripe, as their references show them; content of IPFS; part of a form.
_OBJECT_ID: Final = re.compile(
    r"(?:asst|thread|vs|ftjob|modr|org|proj|user|evt|rs|fc|ws|cntr|toolu|srvtoolu|msgbatch|ap|fu|im|ta|vo|sb|cus|pi|ch"
    r"|in|sub|price|prod|acct|seti|pm)[_-][A-Za-z0-9]{14,40}"
    r"|Qm[1-9A-HJ-NP-Za-km-z]{44}|baf[a-z2-7]{56,60}|-{0,8}WebKitFormBoundary\w{16}-{0,4}"
)
_OF_THINGS: Final = (
    "request|trace|drive|file|run|artifact|commit|upload|version|message|event|object|task|node|pod|worker|actor|job|batch"
    "|host|cluster|index|broker|shard|image|video|sample|document|doc|record|experiment|dataset|model|deployment|operation|resource|instance|snapshot"
)
_LOGINS: Final = (
    *("session", "sess", "sso", "secret", "token", "auth", "login", "key", "device", "cookie", "csrf", "webhook"),
    *("access", "api"),
)
_NO_LOGIN: Final = "".join(f"(?<!{word}{sign})" for word in _LOGINS for sign in "-_ .")
# What stands before a hash, a public key, data in base64, the id of a request or a part of a path.
_HARMLESS_BEFORE: Final = re.compile(
    r"(?:[/+@#]|0x|sha-?\d{1,3}(?:[-_/]\d{3})?|md-?5|crc\w{0,4}|blake\w{0,3}|xxh\w{0,4}|hash(?:es)?|digest|checksum|integrity"
    r"|(?<![a-z0-9])h1|etag|fingerprint|base64|amz-id-2|payload|bytes|blob|peer|drive|nonce|boundary|thumbnail|(?<![a-z])kid|multihash|cid|ipfs|25519"
    r"|(?:cache|restore|public|partition|sort|object|data)[-_ ]?key|ssh-\w{1,10}|ecdsa-[\w-]{1,30}|ksuid|nanoid)"
    r"[\"']?[ \t]{0,2}[-:=,]?[ \t]{0,2}[\"']?\Z"
)
_BEFORE_ID: Final = r"[\"']?[ \t]{0,2}[-:=,]?[ \t]{0,2}[\"'<\[]?\Z"
# Ids that servers make of random base64, in which the first letters may look like the prefix of a service.
_RANDOM_ID_BEFORE: Final = re.compile(
    r"(?:upload|request|version|message|event|trace|cluster|index|node|broker|snapshot|document|object)[-_ ]?u{0,2}ids?"
    rf"{_BEFORE_ID}"
)
# An id names something, but those of sessions and logins open it.
_ID_BEFORE: Final = re.compile(rf"(?:(?:{_OF_THINGS})[-_ ]?ids?|(?<![a-z])(?=u?u?id){_NO_LOGIN}u?u?ids?){_BEFORE_ID}")
# Directly before a word these say that it is a hash, whatever it looks like.
_HASH_BEFORE: Final = re.compile(r"(?:sha-?\d{1,3}|md-?5|blake\w{0,3}|xxh\w{0,4})[:=]\Z")
_AUTH_WORD: Final = re.compile(
    r"auth|token|secret|passw|credential|log(?:ged)?[ _-]?in\b|sign(?:ed|ing)?[ _-]in|\bapi\b|api[-_ ]?key|bearer"
    r"|\b40[13]\b|account|client|\b(?:using|with|invalid|your|provided) (?:key|pat)\b"
)
# Begins in base64: of PNG, GIF, WebP and WAV, a pickle, gzip, Zstandard, and public keys.
_IMAGES: Final = ("iVBORw0KGgo", "R0lGODlh", "R0lGODdh", "UklGR", "gASV", "H4sIA", "KLUv", "MCowBQ", "MIIBIj", "MFkwEw")
# The id of an object in base64, such as `ArtifactCollection:1234`.
_OBJECT: Final = re.compile(rb"[A-Z][a-z]+[A-Z]\w{2,40}:")
# What JSON without a secret has not: a long word of letters and digits, or a character that is not printed. Secrets of
# known formats in it are found by these.
_NOT_READABLE: Final = re.compile(
    rb"[^\x20-\x7e\n\t\r]|(?=[A-Za-z]{0,39}[0-9])(?=[0-9]{0,39}[A-Za-z])[A-Za-z0-9]{12}|[A-Za-z]{40}|[0-9]{20}"
)


class _Random(NamedTuple):
    """A random part of a word, the parts divided by dots."""

    kind: Kind
    length: int  # of the random piece in it
    begin: int
    word: str


class OpaqueWords:
    """The random words of one text that are secrets by their shape. Takes time in proportion to the text."""

    def __init__(self, text: str, low: str) -> None:
        """`low`: the text in lower case, as long as the text."""
        self._text = text
        self._low = low
        self._known = known_words()
        self._searched = 0  # end of what was searched for a word of logins
        self._auth = -_BEFORE  # end of the last one

    def spans(self) -> Iterator[tuple[int, int]]:
        """The spans of the secrets, in order."""
        words = self._text.encode("ascii", "replace").translate(_WORD_CHARACTERS)
        begin = words.find(_LONG)
        while begin >= 0:
            end = words.find(b" ", begin)
            if end < 0:
                end = len(words)
            if end - begin <= _MOST and _DIGIT_AND_LETTER.search(self._text, begin, end):
                span = self._secret(_after_escape(self._text, begin), end)
                if span is not None:
                    yield span
                    end = max(end, span[1])
            begin = words.find(_LONG, end)

    def _secret(self, begin: int, end: int) -> tuple[int, int] | None:
        """The span from the first random part of a word to the last, and the rest of its base64."""
        last = end - 1 if self._text[end - 1] == "." else end  # the point of a sentence
        if self._known.fullmatch(self._text, begin, last):
            return begin, last
        parts = _random_parts(self._text, begin, end)
        if not parts or not self._is_secret(parts, begin, end):
            return None
        last = parts[-1].begin + len(parts[-1].word)
        rest = _REST_OF_BASE64.match(self._text, end) if last == end else None
        if rest is not None and not _WORD_OF_PATH.search(rest[0]):
            last = rest.end()
        return parts[0].begin, last

    def _is_secret(self, parts: list[_Random], begin: int, end: int) -> bool:
        kind, length, start, word = max(parts, key=lambda one: (one.kind == "mixed", one.length))
        if _ID_PREFIX.match(word) or _OBJECT_ID.fullmatch(word):
            return False
        prefix = None if _UUID.match(word) else _PREFIX.match(word) or _PREFIX.fullmatch(self._text, begin, start)
        near = self._low[max(begin - _NEAR, 0) : begin]
        if prefix is not None and kind == "mixed":
            # In a path too.
            return _HASH_BEFORE.search(near) is None and not ("id" in near and _RANDOM_ID_BEFORE.search(near))
        if _is_named_harmless(near) or (prefix is None and _is_part(word, self._text, begin, end)):
            return False
        if prefix is not None and (kind != "hexadecimal" or _HEXADECIMAL_KEY.search(word)):
            return True
        if kind == "mixed" and (length >= _ALONE_LEAST or len(parts) > 1):
            return True
        is_long = prefix is not None or length >= {"mixed": _RANDOM_LEAST, "one case": _ALONE_LEAST}.get(kind, _MOST)
        return is_long and self._has_auth_word_before(begin)

    def _has_auth_word_before(self, begin: int) -> bool:
        """Whether the line has a word of logins shortly before a position; each character is searched once."""
        start = max(self._searched, begin - _BEFORE)
        for hit in _AUTH_WORD.finditer(self._low, start, begin):
            self._auth = hit.end()
        self._searched = max(begin, self._searched)
        return self._auth > begin - _BEFORE and self._text.find("\n", self._auth, begin) < 0


def _after_escape(text: str, begin: int) -> int:
    """The begin of a word without the end of an escape before it: of a line end, or of a colour."""
    if text[begin - 1 : begin] == "\\" and text[begin] in "ntr":
        return begin + 1
    colour = _COLOUR.match(text, begin) if text[begin - 1 : begin] == "[" else None
    return colour.end() if colour is not None else begin


def _random_parts(text: str, begin: int, end: int) -> list[_Random]:
    found = []
    for part in text[begin:end].split("."):
        random = _random_piece(part)
        if random is not None:
            found.append(_Random(*random, begin, part))
        begin += len(part) + 1
    return found


def _random_piece(part: str) -> tuple[Kind, int] | None:
    """The kind and length of what is random in a word, None if nothing is."""
    if _UUID.search(part):
        return "hexadecimal", len(part)
    prefix = _PREFIX.match(part)
    pieces = PARTS.split(part[prefix.end() :]) if prefix is not None else []
    if pieces and sum(map(len, pieces)) >= PART_LEAST * len(pieces):
        piece = "".join(pieces)  # hyphens and underscores are random characters too in base64
        # Names joined by them differ in case, as in `data-OST00a3-osc-ffff9c0012ab34cd`, random pieces within each.
        is_mixed = any(len(_CASE_CHANGE.findall(one)) > 1 for one in pieces)
        if is_mixed and _kind(piece, _PREFIXED_RATE) == "mixed":
            return "mixed", len(piece)
    piece = max(_PIECE.findall(part), key=len, default="")
    kind = _kind(piece, _MIXED_RATE)
    return (kind, len(piece)) if kind is not None else None


def _kind(piece: str, rate: float) -> Kind | None:
    """What a piece of letters and digits is made of, None if it is no random text; `rate`: the most of a mixed one."""
    if _HEXADECIMAL.fullmatch(piece):
        return "hexadecimal" if len(piece) >= _HEXADECIMAL_LEAST else None
    characters = len(piece) / max(len(_CHANGES.findall(piece)), 1)
    if piece.upper() != piece != piece.lower():
        is_long = _DIGIT.search(piece) is not None or len(piece) >= _ONE_CASE_LEAST
        return "mixed" if characters <= rate and is_long and not is_camel_case(piece) else None
    is_random = len(piece) >= _ONE_CASE_LEAST and characters <= _ONE_CASE_RATE
    return "one case" if is_random else None


def _is_named_harmless(before: str) -> bool:
    """Whether the text before a word, in lower case, says that it is a hash, an id or data."""
    return _HARMLESS_BEFORE.search(before) is not None or ("id" in before and _ID_BEFORE.search(before) is not None)


def _is_part(word: str, text: str, begin: int, end: int) -> bool:
    """Whether a word is a part of a file or path, a symbol of a program, or the id of an object in base64."""
    after = text[end : end + 1]
    if after in {"/", "+"} or word.startswith(("_Z", *_IMAGES)):
        return True
    if len(word) >= _WRAPPED and text[begin - 1 : begin] in {"", "\n"} and after in {"", "\n"}:
        return True
    try:
        plain = base64.b64decode(word[: len(word) // 4 * 4], altchars=b"-_")
    except (binascii.Error, ValueError):
        return False
    is_json = plain[:1] in b"[{" and len(word) == end - begin and _NOT_READABLE.search(plain) is None
    return _OBJECT.match(plain) is not None or (is_json and _AUTH_WORD.search(plain.decode().lower()) is None)
