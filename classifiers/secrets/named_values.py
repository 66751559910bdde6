"""Secrets that follow their name: `PASSWORD=...`, `"api_key": "..."`, `--hub_token ...`, `name: HF_TOKEN, value: ...`.

A pattern finds the name, a separator and a value; then the separator, the rest of the name and the value decide whether
it is a secret: `password_policy: strict`, `token=None` and `PWD=/scratch/run1` are none. After a sign that assigns, a
value of mixed characters is one; after a gap, as in a table, it has to look like one; next to a name, to be random.
"""

import re
from typing import Final

from classifiers.secrets.names import BARE_KEYS, HARMLESS_NAME, LONG, NAMES, PASSWORDS, PROSE
from classifiers.secrets.values import (
    HEXADECIMAL_KEY,
    LEAST,
    LETTERS_LEAST,
    TOKEN_LEAST,
    has_mixed_characters,
    has_random_case,
    has_symbol,
    is_code,
    is_directory,
    is_key,
    is_measure,
    is_no_secret,
    is_password,
    is_place,
    is_random,
    looks_like_password,
    looks_like_token,
)

# Colours, as bytes of a terminal or escaped in JSON and Python.
_COLOUR: Final = r"(?:(?:\x1b|\\x1b|\\u001b|\\033)\[[\d;]{0,12}m)"
STYLE: Final = rf"{_COLOUR}{{0,3}}"
_ENCODED_QUOTE: Final = r"(?:&quot;|&apos;|&#(?:34|39|x22|x27);|%(?:25)?2[27]|\\u002[27])"
_QUOTE: Final = rf"(?:\\{{0,7}}[\"'`]|{_ENCODED_QUOTE})"
_SPACE: Final = r"[ \t\xa0\u200b-\u200d\ufeff]"
# Of the signs one alone may begin with a letter: a field that holds the value, as in `tokenStringValue=`.
_FIELD: Final = r"(?i:[a-z]{0,12}(?:value|string|content)(?:value)?)"


def _rest(pattern: str) -> str:
    """What may stand between a name and the sign. What was taken of it is given back to `->` and `_FIELD` alone.

    Otherwise each of many names in one word would be compared with every sign at every length.
    """
    is_field_near = r"(?=(?i:[_-]?[a-z0-9]{0,32}?(?:value|string|content)))"
    return rf"(?:(?>{pattern})(?![A-Za-z0-9])|s?(?=->)|{is_field_near}{pattern}(?={_FIELD}))"


# Name -> what may stand between it and the sign.
_REST: Final = {
    "secret": r"(?:[\w.-]{0,39}\w)?+[.-]{0,4}",
    "token": _rest(r"(?i:(?:[_-][a-z0-9]{1,16}){1,2}|\d{1,2})?"),
    "account.key": r"(?:[\w.-]{0,99}\w)?+[.-]{0,4}",
    "credential": _rest(r"(?i:s?[_-]?[a-z0-9]{0,8})"),
    "contrase": "[\u00f1n]a",
    "securestring": "(?i: -string)?",
    **dict.fromkeys(("pass", "psk", "_pw", "-pw"), r"(?:[_-]?\d{1,2}|(?>(?:_[A-Z0-9]{1,16}){1,3})(?![a-z]))?"),
    "pwd": r"(?:[_-]?\d{1,2}|(?>(?:[_-][A-Za-z0-9]{1,16}){1,3}))?",
    **dict.fromkeys(("_key", "-key"), r"(?:[_-]?\d{1,2})?"),
}
_REST_OF_OTHERS: Final = _rest(r"(?i:(?!or[^a-z])[a-z0-9]{0,8}(?:[_-][a-z0-9]{1,16}){0,3}[_-]?)")
# A rank or time that a collector puts before each line.
_LINE_BEGIN: Final = (
    r"(?:\[[^\]\[\n]{1,40}\]:?|[\dTZ:.,+-]{8,40}|(?<=\n)[ \t]{0,8}\d{1,6}:|\d{1,6}:"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w.-]{1,32}\[\d{1,8}\]:)"
)
# After these signs a value is assigned.
_SIGNS: Final = (
    # name: WANDB_API_KEY, value: ...
    rf",?(?:\s|\\n){{0,60}}+(?:{_LINE_BEGIN}[ \t]{{1,40}})?{_QUOTE}?{_FIELD}{_QUOTE}?\s{{0,2}}[:=]",
    r":\s{0,2}(?:&?(?:'static )?str(?:ing)?|String|bytes|(?:Secret|Optional)\w{0,8}(?:\[\w{1,20}\])?)(?: \| None)? =",
    r":\s{0,2}\[\s{0,20}(?=\\{0,3}[\"'])",  # a list of passwords
    r"\s{0,4}\{\s{0,60}(?:[a-z]{1,20}\s{0,8}=[^\n{}]{0,60}\n\s{0,20}){0,3}default\s{0,8}=",  # of Terraform
    rf":\s{{0,60}}(?:\{{\s{{0,60}})?{_QUOTE}?{_FIELD}{_QUOTE}?\s{{0,2}}[:=]",  # password: {value: ...}
    r"(?:</[\w:.-]{1,40}>\s{0,60}|>\s{0,60}(?=<(?i:value|string)>))(?:<[\w:.-]{1,40}>){1,2}",  # <key>...</key>
    r"=>\s{1,60}string\(\d{1,6}\)",  # of PHP
    r":=|={1,5}>|->|<<<|<-(?=[ \t]?[\"'])|[?\\]?=(?!=)|::?|\uff1a|\uff1d|\u2192",
    r"%(?:25)?3[AaDd]|\\u003[AaDd]|&#(?:58|61|x3[AaDd]);",
    r"(?: [\w:.-]{1,40}=\"[^\"<>\n]{0,200}\"){0,4}>(?:(?=[^<\s]{3,200}</)|<!\[CDATA\[)",
    r"[ \t]{1,40}REG_(?:EXPAND_)?SZ(?=[ \t])",  # of the registry of Windows
)
# After these a value has to look like a secret.
_GAPS: Final = (
    rf"(?<=[\"'`]),(?={_SPACE}{{0,4}}[bu]?\\{{0,7}}[\"'`])",  # ('api_key', '...'), ["--password", "..."]
    r"[=!]==?",  # a comparison
    r"[({](?=[\"'`])",  # set_password('...')
    r"\?(?=[ \t])",
    r"(?i:\s{0,3}\)?\s{1,3}values\s{0,3}\()(?:(?:[^()'\"\n]{1,80}|'[^'\n]{0,80}'),\s{0,3}){0,8}(?=')",  # of SQL
    PROSE,
    r" with(?= [\"'])",
    r" \.(?= [\"'])",  # of Lisp
    r"[ \t]{1,2}(?:--?|[\u2013\u2014>]|>>)(?=[ \t])",
    r"\)?\r?\n(?=[\"'])",  # what a debugger prints
    r"[ \t]?\.{3,80}(?:[ \t]|:(?=[ \t]))",  # printed arguments: api_key ......... x
    r"[ \t]{0,40}[|\u2502\u2503][ \t]{1,40}",
    r"[ \t]{2,40}|\t",
)
_NEXT_TO: Final = r"[ \t]{1,2}(?:[(\[](?!redacted\]))?"
# A value on the next line: after a backslash, or indented in YAML. A block may have the time before each of its lines.
_NEXT_LINE: Final = (
    rf"(?P<line>(?P<block>[|>][-+]?\d?[ \t]{{0,4}}\r?\n(?:{_LINE_BEGIN})?[ \t]{{1,40}})"
    r"|[ \t]{0,4}(?:\\\r?\n[ \t]{0,40}|\r?\n[ \t]{1,40}))?"
)
# A change from nothing to the value: password: "" => "..."
_NOTHING_BEFORE: Final = r"(?:(?:\"\"|''|null|None)[ \t]?[=-]>[ \t]?)?"
_OF_PROMPT: Final = r"(?:\[(?!redacted\])[^\]\[\n]{0,40}\](?=:)|\([^)(\n]{0,40}\)(?=:))?"  # API key [none]: ...
_SEPARATOR: Final = (
    rf"{STYLE}(?:{_QUOTE}|\*{{1,2}})?(?P<index>\]?)(?:\[\d{{0,4}}\]|(?<=[\"'])\))?{STYLE}{_SPACE}{{0,60}}{_OF_PROMPT}{STYLE}"
    rf"(?:(?P<sign>{'|'.join(_SIGNS)})|(?P<gap>{'|'.join(_GAPS)})|{_NEXT_TO})"
    rf"(?:\*{{1,2}}(?= ))?{_SPACE}{{0,4}}(?:%(?:25)?20)?"
    rf"(?:{_COLOUR}{{1,3}}{_SPACE}{{0,2}})?{_NEXT_LINE}{_NOTHING_BEFORE}"
)
# SecretStr('...'), Some("..."), b"...", $'...', and YAML's !!str and &anchor
_PREFIX: Final = (
    r"(?:(?:!!?|&)\w{1,20} )?"
    r"(?:(?:\w{0,20}(?:Str|String|Bytes|Secret|Some|Just|Password|PASSWORD|Token|[sS]ensitive|md5|MD5|[cC]rypt)\()?(?:[bBfFrRuUN@]{1,2}|\$)?(?=[\"'`]))?"
    r"(?:0x[0-9a-f]{4,16} (?=\"))?"  # the address of a text, of a debugger
)
# An escaped line end ends a value: a quote that is never closed would hide the lines after it.
_VALUE: Final = (
    r"(?(block)(?P<secret8>[^\s][^\n]{2,4095})"
    r"|(?:(?<=<!\[CDATA\[)(?P<secret7>[^\]\n]{3,4096})"
    r"|'(?:\\{1,4}'|\"'\")'(?P<secret9>[^'\n\\]{3,4096})"  # in a text between quotes of a shell
    r"|(?:\"\"\"|''')(?P<secret>[^\"'\n]{3,4096})"
    r"|\\{1,7}\"(?P<secret1>[^\"\n\\]{3,4096})"
    r"|\\{1,7}'(?P<secret2>[^'\n\\]{3,4096})"
    r"|\"(?P<secret3>(?:[^\"\n\\]|\\[^\nnr]){3,4096})"
    r"|'(?P<secret4>(?:[^'\n\\]|\\[^\nnr]){3,4096})"
    r"|`(?P<secret6>[^`\n\\]{3,4096})"
    rf"|{_ENCODED_QUOTE}(?P<secret5>(?:[^\s\"'\\,;&%]|%(?!(?:25)?2[27])){{3,4096}})"
    r"|(?P<bare_secret>(?:[^\s\"'`\\,;&<\x1b]|<(?!/)|\x1b(?!\[[\d;]{0,12}m(?:\s|\Z))|\\u(?!00[0-2])[0-9a-fA-F]{4}|&(?:amp|lt|gt);|&(?![A-Za-z_][\w.%\[\]-]{0,40}=|(?:quot|apos|nbsp|#\w{2,4});)|\\[:=#!]){3,4096})))"
)
_CHANGE: Final = re.compile(
    r"[\"'`]?[ \t]?(?:[=-]>|\u2192|to(?!\w))[ \t]?"
    r"(?P<next>[\"'`])?(?P<secret>(?(next)[^\"'`\n\\]|[^\s\"'`\\,;&\x1b]){3,4096})(?(next)(?P=next))"
)
_BARE: Final = "bare_secret"
_CHECKSUM_MOST: Final = 60  # characters before the name of a secret in which one of a checksum is looked for
_HASH_OF: Final = re.compile(r"(?i)[_.-]?(?:hash|digest|checksum|fingerprint|sha-?\d{1,3}|md5)\Z")
_NAME_IN_QUOTES: Final = re.compile(r"(?P<quote>[\"'])(?:[A-Za-z_][\w.-]{0,60})?\Z")
# What follows in a value after a sign that ends others: no other field, escape, mark of a sentence or end of a quote.
_MORE: Final = re.compile(
    r"(?:(?:[,;](?![A-Za-z_][\w.-]{0,40}[=:>])|\\(?![nrtu0\\\"']|x[0-9a-f]))[^\s\"'`\\,;&<>(){}\[\]\x1b]{2,64}){1,8}"
)
_IN_QUOTES_MOST: Final = 256  # characters of a value after a sign that ends others
# What stands before the name of a secret, and before no login: imagePullSecrets, resources of AWS, PREAUTH of Kerberos.
_BEFORE_NAME: Final = re.compile(r"(?:[pP]ull|PRE|arn:[\w-]{1,20}:secretsmanager:[\w:-]{1,40}:)\Z")
_OF_TOKENIZER: Final = frozenset({"\u0120", "\u2581"})  # what stands before a word in vocabularies
_OF_ID: Final = re.compile(r"(?i)[_.-]?ids?\Z")
_OTHER_KEY: Final = re.compile(
    r"(?i)(?:public|cache|restore|partition|sort|object|primary|foreign|websocket|idempotency|dedup\w{0,8})[ _-]?\Z"
)
_OF_SHELL: Final = "secret6"  # between backticks
_FIELD_OF_OTHER: Final = re.compile(r"[A-Za-z][A-Za-z_.-]{1,30}=(?P<value>(?P<word>[A-Za-z_]+)|[^=]+)")
_CHECKSUM: Final = re.compile(r"(?i)(?:checksum|digest|fingerprint|hash|md5|sha-?\d{1,3})[/_.-][\w./-]{0,40}\Z")
_DIGITS_LEAST: Final = 32  # characters of a key of hexadecimal digits, which may all be of 0 to 9
_COLONS: Final = frozenset({":", "::", "->", "\u2192"})

_COMPOUND: Final = re.compile(r"[_.\"'<-][pP]|[a-z]P")  # user_pass, userPass, "pass", <pass>
_OWNER: Final = re.compile(r"(?i)(?:store|key|root|user|db|admin|bind|proxy|smtp|ldap)\Z")  # of `-storepass`, `dbpass`
# The user before a password: in a record, and in a dialogue of FTP, POP3 or IRC.
_LOGIN: Final = re.compile(
    r"(?i)(?<![a-z])(?:user(?:name)?|login)[\"']?\s{0,3}[:=][^\n]{0,100}(?:\n[ \t-]{0,40}|[,;|] {0,4})[\"']?\Z"
)
_DIALOGUE: Final = re.compile(
    r"(?:>|C:|\*cmd\*|(?:^|\n)\d{3}[ -][^\n]{1,100}\n|(?<!\w)USER [^\s]{1,100}\r?\n)[ '\"]{0,2}\Z"
)
_USER: Final = re.compile(
    r"(?i)\b(?:user(?:name)?|login)(?:[ =:]|: )\S{1,60}[ ,;] ?(?:and |with )?\Z"
)  # user ana pass ...
_OBJECT_OF_TOOL: Final = re.compile(r"(?i)\b(?:docker|podman|swarm|kubernetes|k8s)[ :]{1,2}\Z")
# A value that no pass over data or of a compiler has as its name.
_STRONG: Final = re.compile(
    r"(?=(?:\D{0,64}\d){4})(?=.{0,64}(?:[A-Za-z]\d+[A-Za-z]|[!#$%^&*?~+=@]))[^\s./:,]{10,64}"
    r"|(?=.{0,32}\d)(?=.{0,32}[a-z])(?=.{0,32}[A-Z])(?:[A-Za-z0-9]{4}-){2,5}[A-Za-z0-9]{4}"
)
_LOGIN_MOST: Final = 160  # characters before a password in which its user is looked for
_STEP: Final = re.compile(
    r"(?i)(?:num|n|max|min|forward|backward|first|second|last|single|multi|per|each|fusion|opt\w{0,10}|one|two|total|no|of"
    r"|current|compiler|lowering)[_ -]\Z"
)
# Of the text before a name, from its end: a search from its begin would try every place.
_SECRET_KEY: Final = re.compile(r"(?i)secret[_-]?(?:access[_-]?)?key[\"']?\Z")
_FLAG: Final = re.compile(r"[\w.-]{0,40}--?(?![\w-])")  # --hub-
_ASSIGNING_COMMAND: Final = re.compile(r"[\w.]{0,60} {1,4}(?:vnetes|xtes|VNE|[gxU]{1,3}- tes)\b")  # set -gx, setx, ENV
_DIRECTIVE: Final = re.compile(r"[\w.-]{0,60}[ \t]{0,8}(?:\Z|\n)")  # a name at the begin of its line
# A variable of the environment such as `VASTAI_KEY`; hashes are often the keys of caches and of data.
_NAME_OF_VARIABLE: Final = re.compile(
    r"(?:^|[^\w])(?!\w{0,60}(?:CACHE|PUBLIC|PARTITION|SORT|PRIMARY|FOREIGN|HASH|DEDUP\w{0,8}|IDEMPOTENCY|RUN|OBJECT|FILE|DATA|S3)_KEY)"
    r"[A-Z][A-Z0-9_]{1,60}_KEY\Z"
)


def pattern_of(name: str) -> str:
    """The regular expression of a name with its value.

    Groups: `rest` of the name, `sign` or `gap` before the value, and the value in one whose name has `secret` in it.
    """
    rest = _REST.get(name, "" if name[-1] in "=:\"'" else _REST_OF_OTHERS)
    return rf"(?i:{re.escape(name.rstrip('=:' + chr(34) + chr(39)))})(?P<rest>{rest}){_SEPARATOR}{_PREFIX}{_VALUE}"


def is_secret_value(marker: str, hit: re.Match[str], group: str, text: str) -> bool:
    """Whether a value is a secret.

    Args:
        marker: the name, a key of NAMES.
        hit: a match of its pattern.
        group: the group of the value.
        text: the text that was searched.
    """
    value, bare = hit[group], group == _BARE
    if _is_word(marker, hit, value) or value.startswith(("<", "[", "{", "(")):
        return False
    if _is_harmless(marker, hit, text) or _is_code_or_place(marker, hit, group) or _ends_a_text(hit, value, text):
        return False
    if hit["line"]:
        return _is_secret_on_next_line(marker, hit, value, text, bare=bare)
    if hit["sign"] is None:
        return _is_secret_after_gap(marker, hit, value, text, bare=bare)
    return _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=hit["sign"] in _COLONS and bare)


def _is_word(marker: str, hit: re.Match[str], value: str) -> bool:
    """Whether a value is a word, which no rule would accept."""
    if hit["sign"] is not None and marker in PASSWORDS and has_random_case(value):
        return False
    if value.isalpha() and len(value) < LETTERS_LEAST and (hit["sign"] is None or not NAMES[marker]):
        return True
    # All rules for such a name ask for that many and mixed characters, except for keys of hexadecimal digits.
    return not NAMES[marker] and (
        len(value) < LEAST or (len(value) < _DIGITS_LEAST and not has_mixed_characters(value))
    )


def _is_secret_on_next_line(marker: str, hit: re.Match[str], value: str, text: str, *, bare: bool) -> bool:
    """A value below its name: in quotes or a block of YAML after a sign, or random."""
    is_block = hit["block"] is not None
    is_assigned = (is_block and NAMES[marker]) or (hit["sign"] is not None and not bare and " " not in value)
    if is_assigned and _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=True):
        return True
    return (bare or is_block) and is_random(value)


def whole_value(hit: re.Match[str], group: str, text: str) -> tuple[int, int]:
    """The span of a value; of one in `'NAME=value&more'`, whose quotes are around the name too, up to the quote.

    A comma in it ends a password only before a space or another field.
    """
    begin, end = hit.span(group)
    more = _MORE.match(text, end) if group == _BARE and hit["sign"] is not None else None
    end = more.end() if more is not None else end
    if group != _BARE or hit["sign"] != "=" or text[end : end + 1] not in {"&", ";", ",", "<"}:
        return begin, end
    name = _NAME_IN_QUOTES.search(text, max(hit.start() - 64, 0), hit.start())
    if name is None:
        return begin, end
    line = text.find("\n", end)
    close = text.find(name["quote"], end, line if line >= 0 else len(text))
    return (begin, close) if 0 <= close <= end + _IN_QUOTES_MOST else (begin, end)


def next_value(hit: re.Match[str], text: str) -> re.Match[str] | None:
    """The value to which one changed, as in `password = "x" -> "y"`: a match whose group `secret` may be one."""
    changed = _CHANGE.match(text, hit.end()) if hit["sign"] or hit["gap"] else None
    is_word = changed is not None and changed["next"] is None and not looks_like_password(changed["secret"])
    return None if is_word else changed


def is_next_secret(marker: str, hit: re.Match[str], value: str, text: str) -> bool:
    """Whether the value to which one changed is a secret; `marker`, `hit` and `text` as of `is_secret_value`."""
    if _is_harmless(marker, hit, text) or is_place(value):
        return False
    return _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=True)


def _is_code_or_place(marker: str, hit: re.Match[str], group: str) -> bool:
    value = hit[group]
    if group == _BARE and ((hit["index"] and hit["sign"] != "=>") or is_code(value) or _is_field(value, hit["sign"])):
        return True
    if group == _OF_SHELL and hit["sign"] == "=" and " " in value and hit.string[hit.start(group) - 2] == "=":
        return True  # a command whose output is the value
    is_of_shell = marker.startswith("pwd") and hit.string[hit.start() - 1 : hit.start()] != ";"  # PWD=/scratch/run1
    return is_place(value) or (is_of_shell and is_directory(value))


def _is_field(value: str, sign: str | None) -> bool:
    """Whether a value is another name with a word or number, as in `auth: method=token`."""
    field = _FIELD_OF_OTHER.fullmatch(value) if sign != "=" and "=" in value else None
    return field is not None and bool(field["word"] or is_measure(field["value"]) or is_no_secret(field["value"]))


def _ends_a_text(hit: re.Match[str], value: str, text: str) -> bool:
    """Whether the quote before a value ends a text in which the name stands, as in `read -p "Password: " PW`."""
    if value[0] not in " \t),;+]}":
        return False
    quote = text[hit.start(str(hit.lastgroup)) - 1]
    if text[hit.end("rest") : hit.end("rest") + 1] == quote:  # "key": "+x"
        return False
    before = text[max(hit.start() - _LOGIN_MOST, 0) : hit.start()]
    return quote in "\"'" and before.count(quote, before.rfind("\n") + 1) % 2 == 1


def _is_harmless(marker: str, hit: re.Match[str], text: str) -> bool:
    """Whether the whole name is one of something else than the secret, such as `password_policy`."""
    if (hit["rest"] and HARMLESS_NAME.match(hit["rest"])) or text[
        max(hit.start() - 1, 0) : hit.start()
    ] in _OF_TOKENIZER:
        return True
    value = hit[str(hit.lastgroup)]
    if marker not in PASSWORDS and HEXADECIMAL_KEY.fullmatch(value) and _is_checksum(hit, text):
        return True
    if _OF_ID.match(hit["rest"]) and not looks_like_token(value):
        return True  # the name of a secret
    if marker in BARE_KEYS:
        return _OTHER_KEY.search(text, max(hit.start() - 20, 0), hit.start()) is not None
    if marker == "pass":  # a pass over data or of a compiler
        is_step = hit["sign"] != "=" and not _is_pass_of_login(hit, text)
        return is_step or _STEP.search(text, max(hit.start() - 20, 0), hit.start()) is not None
    return (
        marker in {"secret", "auth:"} and _BEFORE_NAME.search(text, max(hit.start() - 60, 0), hit.start()) is not None
    )


def _is_checksum(hit: re.Match[str], text: str) -> bool:
    """Whether the whole name is one of a checksum, as `token_hash` and `checksum/secret` are."""
    before = _CHECKSUM.search(text, max(hit.start() - _CHECKSUM_MOST, 0), hit.start())
    return before is not None or _HASH_OF.match(hit["rest"]) is not None


def _is_pass_of_login(hit: re.Match[str], text: str) -> bool:
    """Whether `pass` is short for password."""
    start = hit.start()
    is_file = hit["sign"] is None and text[max(start - 1, 0) : start] == "."  # key.pass ana@db01
    is_named = _COMPOUND.search(text, max(start - 1, 0), start + 1) or _OWNER.search(text, max(start - 5, 0), start)
    if is_named and not is_file:
        return True
    if is_file or hit["gap"]:
        is_said = not is_file and hit["gap"].strip() in {"is", "to"}
        return is_said and _STRONG.fullmatch(hit[str(hit.lastgroup)]) is not None
    before = text[max(start - _LOGIN_MOST, 0) : start]
    if _USER.search(before) is not None:
        return True
    if hit["sign"]:
        is_strong = hit["sign"] == ":" and _STRONG.fullmatch(hit[str(hit.lastgroup)]) is not None
        return is_strong or _LOGIN.search(before) is not None
    if not hit[0].startswith("PASS ") or hit[_BARE] is None:
        return False
    is_line = before[-1:] in {"", "\n"} and text[hit.end() : hit.end() + 1] in {"", "\n", "\r"}
    is_strong = has_symbol(hit[_BARE]) or ("_" not in hit[_BARE] and _STRONG.fullmatch(hit[_BARE]) is not None)
    return _DIALOGUE.search(before) is not None or (is_line and is_strong)


def _is_secret_after_gap(marker: str, hit: re.Match[str], value: str, text: str, *, bare: bool) -> bool:
    """Without a sign between name and value: arguments of commands, tables, quoted values, directives, prose."""
    before = text[max(hit.start() - 80, 0) : hit.start()][::-1]
    if _ASSIGNING_COMMAND.match(before):
        return _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=False)
    gap = (hit["gap"] or "").strip()
    is_flag = _FLAG.match(before) is not None or (marker[0] == "-" and before[:1] in {"", " ", "'", '"'})
    if gap in {"", ","} and is_flag:
        return not value.startswith("-") and _is_assigned_secret(marker, _name_before(hit, text), value, by_colon=False)
    is_line = text[hit.end() : hit.end() + 1] in {"", "\n", "\r"} and _DIRECTIVE.match(before) is not None
    if marker in BARE_KEYS:
        return is_key(value)
    if marker == "secret" and not hit["gap"] and _OBJECT_OF_TOOL.search(text, max(hit.start() - 20, 0), hit.start()):
        return False  # the id of a secret that a tool keeps
    is_alone = marker in {"password", "passphrase", "pswd", "bindpw", "rootpw"} or (
        marker == "pass" and hit.start("rest") + 1 == hit.start(_BARE)
    )
    if hit["gap"] or not bare or is_line or (is_alone and not hit["rest"]):
        is_short = marker in PASSWORDS or (marker == "secret" and not bare and has_symbol(value))
        return looks_like_password(value) if is_short else looks_like_token(value)
    return is_random(value) or (marker != "token" and HEXADECIMAL_KEY.fullmatch(value) is not None)


def _is_assigned_secret(marker: str, name: str, value: str, *, by_colon: bool) -> bool:
    """Whether a value after a sign is a secret; `name` is the text up to the value."""
    if marker in BARE_KEYS:
        if HEXADECIMAL_KEY.fullmatch(value):
            return _NAME_OF_VARIABLE.search(name) is not None
        return is_key(value)
    if NAMES[marker]:
        return not by_colon or len(value) >= TOKEN_LEAST or is_password(value)
    if marker in PASSWORDS:
        return len(value) >= LEAST and is_password(value) and not is_measure(value)
    value = value.rpartition(" ")[2] if marker in LONG else value  # in `Bearer ...` the last word; no token has a space
    least = TOKEN_LEAST if marker in LONG or (by_colon and not _SECRET_KEY.search(name)) else LEAST
    return has_mixed_characters(value) and len(value) >= least


def _name_before(hit: re.Match[str], text: str) -> str:
    """The text of a name, and what stands before it: at most 64 characters."""
    end = hit.end("rest")
    return text[max(end - 64, 0) : end]
