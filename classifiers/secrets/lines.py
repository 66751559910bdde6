"""Secrets on the lines below the one that names them: the answer to a prompt, what a command prints, columns of tables.

    Password:                    $ kubectl get secret db -o ... .data.password       user,password,host
    Tiger-Moss41x                Tiger-Moss41x                                       ana,Tiger-Moss41x,db01

The name is found by the search for names; each line with names is read once, and so is each row of a table.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from classifiers.secrets.names import PASSWORDS
from classifiers.secrets.values import (
    LETTERS_LEAST,
    TOKEN_LEAST,
    has_random_case,
    is_measure,
    is_no_secret,
    looks_like_password,
    looks_like_token,
)


class Name(NamedTuple):
    """The name of a secret in a text: its place, and itself in lower case."""

    begin: int
    end: int
    marker: str


_LINE_MOST: Final = 600  # characters of a line with a name
_ROWS_MOST: Final = 2000
_CELLS_MOST: Final = 64
# A rank, a time or a container that a collector puts before each line.
_COLLECTED: Final = (
    r"(?:\[[^\]\[\n]{1,60}\]:?[ \t]|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w.-]{1,32}\[\d{1,8}\]: "
    r"|[\w.-]{1,60}[ \t]{1,4}\|[ \t]|\d{4}-\d\d-\d\d[T ][\d:.,Z+-]{8,24}[ \t]|\d{1,6}:[ \t])?"
)
_PREFIX: Final = re.compile(_COLLECTED)
# What stands between the name and the end of a prompt: Password for ana (again):
_ASKED: Final = re.compile(
    r"s?(?:[ \t]{1,2}(?i:for|of|from|to)[ \t][^\n:]{1,120})?(?:[ \t]{0,2}[\[(][^\n\])\[(]{0,60}[\])])?"
    r"[ \t]{0,4}:[ \t\r]{0,4}"
)
# A line of a shell or of a debugger.
_PROMPT: Final = re.compile(
    r"(?:^|[\s~/)\]\w@:-])(?:[$#%]|>{1,3})[ \t]+\S"
    r"|\((?:gdb|lldb|[iI]?[pP]db|dlv)\)[ \t]|\bipdb>[ \t]|\bIn \[\d{1,5}\]:[ \t]|^\+{1,3} "
)
# A program that prints what it is asked for.
_READER: Final = re.compile(
    r"(?<![\w./-])(?:(?:kubectl|oc) [^|\n]{0,200}?\b(?:get|extract|exec|view)|kubectl create token"
    r"|vault (?:kv get|read|print)|aws (?:secretsmanager|ssm|ecr)|gcloud (?:secrets|auth)"
    r"|az (?:keyvault|account|acr|storage)|terraform output|pulumi (?:config|stack)|printenv|echo|cat|jq|yq|sops"
    r"|ansible-vault|doppler|infisical|chamber|credstash|security find|secret-tool"
    r"|(?:docker|podman) (?:exec|inspect|run|swarm)|argocd|helm get|op (?:read|item)|bw get|pass|gopass|keyring"
    r"|lpass|keepassxc-cli|heroku config|fly|gh auth|glab auth|grep|base64|kubeadm)\b"
)
# What a debugger writes before a value.
_DECORATION: Final = (
    r"(?:\$\d{1,6} = |Out\[\d{1,5}\]:[ \t]|\([\w:<>, *]{1,60}\)[ \t](?:\$\d{1,6} = )?"
    r"|0x[0-9a-f]{4,16}(?: <[^>\n]{1,80}>)?:[ \t]{1,4})?(?:0x[0-9a-f]{4,16} )?"
)
_VALUE: Final = (
    r"(?:[bu]?\"(?P<secret>[^\"\n]{4,4096})\"|[bu]?'(?P<secret1>[^'\n]{4,4096})'|(?P<secret2>[^\s\"'`]{6,4096}))"
    r"[ \t\r]{0,4}(?=\n|\Z)"
)
_BELOW: Final = re.compile(rf"\n(?:#[^\n]{{0,80}}\n)?{_COLLECTED}[ \t]{{0,8}}{_DECORATION}{_VALUE}")
# A file, a number of parts, an address, an assignment or markup: no password that a line has alone.
_NO_ANSWER: Final = re.compile(
    r"[A-Za-z_][\w.-]{0,60}(?::|=(?!=?\Z)).*|.*[:,;]|\w+://.*|[-+*#$>/~.@<({\[%|].*"
    r"|[a-z]+(?:[-_.][a-z0-9]+)+|[a-z]+-?\d{1,4}|[\w-]+(?:\.[A-Za-z]\w{1,5}){1,3}"
)
_INSIDE: Final = re.compile(r"[A-Za-z]\d+[A-Za-z]|[!#$%^&*?~+=@]|\d{4,}[A-Za-z]|[A-Za-z]\d{4,}\Z")
_HEADING: Final = re.compile(
    r"(?i)(?:[a-z]{1,20}[ _-]?){0,3}(?P<name>passw(?:or)?d|passphrase|passwort|passcode|pass|pwd|pw|secret|secret_?key"
    r"|token|api_?key|credentials?)s?(?:[ _-](?:plain|text|value|clear))?"
)
# What stands after the name at the head of a column.
_HEAD_END: Final = re.compile(r"\w{0,16}[\"'`]?(?:[ \t]{0,40}[,;|\u2502\t\r]|[ \t]{2}|[ \t]?(?!.))")
_NAME_END: Final = re.compile(r"s?(?![a-z])")
_COLUMN: Final = re.compile(r"[A-Za-z_#][\w .#/()-]{0,40}")
_RULE: Final = re.compile(r"[-+|=: \t\u2500-\u257f]{3,}\r?")
_GAP: Final = re.compile(r"[ \t]{2,}|\t")
_PASSWORD_COLUMNS: Final = frozenset({"password", "passwd", "passphrase", "passwort", "passcode", "pass", "pwd", "pw"})


def secrets_below(text: str, names: list[Name]) -> list[tuple[int, int]]:
    """The spans of secrets below lines with a name, not in order.

    Args:
        text: the text.
        names: the names of secrets in it, in order.
    """
    found: list[tuple[int, int]] = []
    read = -1  # end of the last line, or row, that was read
    line: list[Name] = []
    line_end = -1
    for name in names:
        if name.begin < read:
            continue
        if name.begin >= line_end:
            read = _read_below(text, line, line_end, found)
            line, line_end = [], text.find("\n", name.end)
            if line_end < 0:
                return found
        if name.begin >= read:
            line.append(name)
    _read_below(text, line, line_end, found)
    return found


def _read_below(text: str, names: list[Name], end: int, found: list[tuple[int, int]]) -> int:
    """Add the secrets below one line, which ends at `end`; returns the end of what was read."""
    if not names or end - names[-1].end > _LINE_MOST:
        return end
    begin = text.rfind("\n", max(names[0].begin - _LINE_MOST, 0), names[0].begin) + 1
    hit = _BELOW.match(text, end)
    if hit is not None and _is_answer(text, begin, end, names[-1], hit):
        found.append(hit.span(str(hit.lastgroup)))
        return hit.end()
    if end - begin > _LINE_MOST or not any(_HEAD_END.match(text, name.end, end) for name in names):
        return end
    return _read_column(text, begin, end, found)


def _is_answer(text: str, begin: int, end: int, name: Name, hit: re.Match[str]) -> bool:
    """Whether the line below is what a prompt or a command asks for; `name` is the last one in the line."""
    value, bare = hit[str(hit.lastgroup)], hit["secret2"] is not None
    if is_no_secret(value) or is_measure(value) or " " in value.strip() or (bare and _NO_ANSWER.fullmatch(value)):
        return False
    if not _NAME_END.match(text, name.end, end):
        return False  # a longer word, as `tokenizer`
    is_prompt = _PROMPT.search(text, begin, end) is not None
    if not bare and is_prompt and name.marker in PASSWORDS and len(value) >= TOKEN_LEAST:
        return True
    is_strong = looks_like_token(value) or (_looks_like_password(value) and _INSIDE.search(value) is not None)
    if _ASKED.fullmatch(text, name.end, end):
        return _looks_like_password(value) if name.marker in PASSWORDS else is_strong
    if not is_prompt and _READER.search(text, begin, end) is None:
        return False
    return is_strong if bare else _looks_like_password(value)


def _looks_like_password(value: str) -> bool:
    return looks_like_password(value) or (len(value) >= LETTERS_LEAST and has_random_case(value))


def _read_column(text: str, begin: int, end: int, found: list[tuple[int, int]]) -> int:
    """Add the secrets in the columns that the line from `begin` to `end` names; returns the end of the table."""
    begin = _after_prefix(text, begin, end)
    divide = _divider(text[begin:end])
    heads = divide(text, begin, end) if divide is not None else []
    columns = _columns(text, heads)
    if divide is None or not columns or not all(_COLUMN.fullmatch(text, *head) for head in heads[1:]):
        return end
    for _ in range(_ROWS_MOST):
        begin, end = end + 1, text.find("\n", end + 1)
        end = end if end >= 0 else len(text)
        if begin >= len(text):
            return end
        if _RULE.fullmatch(text, begin, end):
            continue
        begin = _after_prefix(text, begin, end)
        cells = divide(text, begin, end)
        if len(cells) != len(heads):
            cells = list(_spans(text, begin, end, r"\S+")) if divide is _by_gaps else []
        if len(cells) != len(heads):
            return begin
        for number, is_password in columns:
            first, last = _cell(text, *cells[number], is_first=number == 0)
            value = text[first:last]
            if not is_no_secret(value) and (_looks_like_password if is_password else looks_like_token)(value):
                found.append((first, last))
    return end


def _after_prefix(text: str, begin: int, end: int) -> int:
    """The begin of a line without what a collector puts before it."""
    prefix = _PREFIX.match(text, begin, end)
    return prefix.end() if prefix is not None else begin


def _columns(text: str, heads: list[tuple[int, int]]) -> list[tuple[int, bool]]:
    """The columns of secrets: the number of each, and whether it holds passwords. None if there is one column alone."""
    columns = []
    for number, (first, last) in enumerate(heads if len(heads) > 1 else []):
        head = text[first:last]
        # A collector may have put the time before the first column.
        heading = _HEADING.fullmatch(head if number else re.split(r"[ \t]", head)[-1])
        if heading is not None:
            columns.append((number, heading["name"].lower() in _PASSWORD_COLUMNS))
    return columns


def _divider(line: str) -> Callable[[str, int, int], list[tuple[int, int]]] | None:
    """How the cells of a table with this heading are divided, None if it is none."""
    if "|" in line or "\u2502" in line:
        return _by_bars
    for sign, divide in ((",", _by_commas), (";", _by_semicolons), ("\t", _by_tabs)):
        if sign in line:
            return divide
    return _by_gaps if _GAP.search(line.strip()) else None


def _by_bars(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    cells = [one for one in _spans(text, begin, end, r"[^|\u2502\n]+") if one[0] < one[1]]
    # Between bars at both ends; a collector may have put something before the first one.
    is_closed = (
        len(cells) > 1 and text[begin:end].rstrip()[-1:] in "|\u2502" and text[begin:end].lstrip()[:1] not in "|\u2502"
    )
    return cells[1:] if is_closed else cells


def _by_commas(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    return list(_spans(text, begin, end, r"\"[^\"\n]*\"|[^,\n]+|(?<=,)(?=,)"))


def _by_semicolons(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    return list(_spans(text, begin, end, r"\"[^\"\n]*\"|[^;\n]+|(?<=;)(?=;)"))


def _by_tabs(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    return list(_spans(text, begin, end, r"[^\t\n]+|(?<=\t)(?=\t)"))


def _by_gaps(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    return list(_spans(text, begin, end, r"\S+(?:[ \t]\S+)*"))


def _spans(text: str, begin: int, end: int, pattern: str) -> Iterator[tuple[int, int]]:
    """The spans of what matches, without white space and quotes around it; at most `_CELLS_MOST` and two more."""
    for number, cell in enumerate(re.compile(pattern).finditer(text, begin, end)):
        if number > _CELLS_MOST:
            return
        first, last = cell.span()
        while first < last and text[first] in " \t\r\"'`":
            first += 1
        while last > first and text[last - 1] in " \t\r\"'`":
            last -= 1
        yield first, last


def _cell(text: str, first: int, last: int, *, is_first: bool) -> tuple[int, int]:
    """The span of a value in a cell: of the first column what follows a time or a rank before it."""
    space = text.rfind(" ", first, last) if is_first else -1
    return (space + 1 if space >= 0 else first), last
