"""The signature catalogue: lines that frameworks, drivers, kernels and schedulers are known to print.

A catalogue is a folder of TOML files, one for each family (`nvidia.toml`, `pytorch.toml` ...). The packaged one is
`classifiers/data/signatures/`. A file:

    version = 1
    family = "nvidia"                      # the file's name; every id begins with it and a dot

    [words]                                # optional: parts of expressions that are written once, for this file
    gpu = '(?:gpus?|accelerators?)'        # stands for {{gpu}} in the expressions below it

    [[signature]]
    id = "nvidia.ecc-uncorrectable"        # family "." then a-z 0-9 and dashes; unique in the catalogue
    title = "Uncorrectable ECC error reported by CUDA"
    literals = ["uncorrectable ecc error"] # any one of them must be in the line, case ignored; >= 3 characters each;
                                           # of five letters and digits or fewer: must stand between word edges
    pattern = '...'                        # optional regular expression, searched in that line (see below)
    role = "initiating"                    # initiating | cascade | teardown | context
    strength = "decisive"                  # decisive | strong | weak
    cause = "HW.GPU.1"                     # or weights: cause = { "HW.GPU.1" = 0.8, "HW.GPU.2" = 0.2 }
    category = "none"                      # optional; a code, "none", or weights. Absent: the line is no evidence on it
    symptom = "D.1.3"                      # optional; as category. Only used where the job has several processes
    retry = "helps_elsewhere"              # optional: helps | helps_elsewhere | after_repair | futile; `when`: optional
    when = { status = ["failed"], exit_code = [139], signal = [11], scheduler = ["slurm"], stream = ["node"] }
    needs = ["nvidia.some-id"]             # optional: counts only if one of these is in the case too
    unless = ["pytorch.cuda-oom", "python.*"]  # optional: only context if one is; both may name `OBSERVATIONS` too
    source = "CUDA driver API, CUresult"   # the document or the origin of the message
    examples = ["RuntimeError: CUDA error: uncorrectable ECC error encountered"]   # each must match this entry
    near_misses = ["0 uncorrectable volatile ECC errors since boot"]               # similar lines; none may match

Matching: one pass over the text searches all literals of the catalogue at once. Only a line with a hit is read further,
cut to 2,000 characters, and `pattern` (if any) is searched in it as written: use `(?i)` where case varies. A pattern
uses the subset of a linear-time engine: no look-around, no back-references. Choose literals that healthy logs do not
contain on every line. An entry matches one line; a line may match several entries.

Lines: a line of a log stream, the text of a node event (stream "node"), or a line of the scheduler's message (stream
"scheduler"): `status=failed exit_code=137 signal=9` (the known facts, in this order), then `reason=NODE_FAIL` and
`message=...`, each on its own line. So a signature can match facts alone: literals = ["status=node_fail"].
An entry whose only stream is "node" is tried on node events, so its words may be general. On logs it is tried where a
daemon or the kernel printed the line (`envelopes.daemon_lines`), except the families `changes` and `events`.

Role: `initiating` is the beginning of the failure (a root error), `cascade` an error of other processes because of it
(a watchdog's timeout, connection closed by a peer, "another task died"), `teardown` a line after the end (SIGTERM to
the rest, launcher summary), `context` a line worth showing that proves nothing. A cascade or teardown entry never comes
before an initiating one of the same case.

Strength: a `decisive` entry on the first initiating line decides the side, unless the trained text model is nearly
certain of another one; `strong` ones have less weight, `weak` ones are only a feature of the text model.
"""

import itertools
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, Literal, cast, get_args

import re2

from classifiers import taxonomy
from classifiers.contracts import JobFacts
from classifiers.observation_names import OBSERVATIONS
from classifiers.taxonomy import RetryOutlook, Role

Strength = Literal["decisive", "strong", "weak"]


class LinePattern:
    """An expression of an engine that is linear in the text (RE2): job owners choose what it is run on.

    It is compiled when it is used first: one log needs few of them. A set of one expression only answers whether it
    matches, which takes half the time of a search for the positions.

    Attributes:
        pattern: the expression.
    """

    __slots__ = ("_match", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._match: Callable[[bytes], Sequence[int] | None] | None = None

    def __reduce__(self) -> tuple[type["LinePattern"], tuple[str]]:
        return LinePattern, (self.pattern,)  # processes that get it compile it themselves

    def matches(self, line: bytes) -> bool:
        """Whether it matches anywhere in a line in UTF-8."""
        match = self._match or self.compile()
        return bool(match(line))

    def compile(self) -> "Callable[[bytes], Sequence[int] | None]":
        """Compile it.

        Raises:
            re2.error: it is no expression of RE2.
        """
        match = self._match = compile_set([self.pattern])
        return match


def compile_set(patterns: Iterable[str]) -> Callable[[bytes], Sequence[int] | None]:
    """What finds the places of the expressions that match anywhere in a line in UTF-8; None or nothing where none does.

    Raises:
        re2.error: one is no expression of RE2.
    """
    quiet = re2.Options()
    quiet.log_errors = False
    found = re2.Set.SearchSet(quiet)
    for pattern in patterns:
        try:
            found.Add(pattern)
        except re2.error:
            re2.compile(pattern, quiet)  # its error names the reason
            raise
    found.Compile()
    # The package's own wrapper around it, which encodes texts, takes a sixth of the time of a call.
    match: Callable[[bytes], Sequence[int] | None] = getattr(found, "_set", found).Match
    return match


VERSION: Final = 1
MIN_LITERAL: Final = 3  # letters (judgement)
SHORT: Final = 5  # letters; shorter literals are often part of other words (judgement)
MAX_LINE: Final = 2_000  # characters (judgement)
_ID = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*\.[a-z0-9]+(?:-[a-z0-9]+)*")
_WORD = re.compile(r"\{\{([a-z-]+)\}\}")
_NOT_LINEAR = re.compile(r"\(\?(?:=|!|<=|<!)|\\[1-9]|\(\?P=|\(\?\(")
_KEYS = frozenset(
    {
        "id", "title", "literals", "pattern", "role", "strength", "cause", "category", "symptom", "retry", "when",
        "needs", "unless", "source", "examples", "near_misses",
    }
)  # fmt: skip
_WHEN = {"status": str, "exit_code": int, "signal": int, "scheduler": str, "stream": str}


class CatalogueError(ValueError):
    """A signature file does not follow the format; the message names file, entry and field."""


@dataclass(frozen=True, slots=True)
class When:
    """Facts under which an entry applies; an empty set allows all."""

    status: frozenset[str] = frozenset()
    exit_code: frozenset[int] = frozenset()
    signal: frozenset[int] = frozenset()
    scheduler: frozenset[str] = frozenset()
    stream: frozenset[str] = frozenset()

    def holds(self, job: JobFacts, stream: str) -> bool:
        """Whether an entry applies to a job and the stream of a line."""
        return (
            (not self.status or job.status in self.status)
            and (not self.exit_code or job.exit_code in self.exit_code)
            and (not self.signal or job.signal in self.signal)
            and (not self.scheduler or job.scheduler in self.scheduler)
            and (not self.stream or stream in self.stream)
        )


@dataclass(frozen=True, slots=True)
class Signature:
    """One entry. `causes`, `categories`, `symptoms`: weights by code that sum to 1, empty where it is no evidence."""

    id: str
    title: str
    literals: tuple[str, ...]
    pattern: LinePattern | None
    role: Role
    strength: Strength
    causes: Mapping[str, float]
    categories: Mapping[str, float]
    symptoms: Mapping[str, float]
    retry: RetryOutlook | None
    source: str
    examples: tuple[str, ...]
    near_misses: tuple[str, ...]
    when: When | None = None
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    family: str = field(default="")

    def matches(self, line: str) -> bool:
        """Whether the entry matches a line, without its conditions on the job."""
        low = line.lower()
        if not any(contains_literal(literal, low) for literal in self.literals):
            return False
        return self.pattern is None or self.pattern.matches(line[:MAX_LINE].encode())


def is_short(literal: str) -> bool:
    """Whether a literal is so short that it counts only as a whole word."""
    return literal.isalnum() and len(literal) <= SHORT


def contains_literal(literal: str, low: str) -> bool:
    """Whether a lower-case line contains a literal; a short one only as a whole word."""
    at = low.find(literal)
    while at >= 0:
        end = at + len(literal)
        if not is_short(literal) or not ((at and low[at - 1].isalpha()) or (end < len(low) and low[end].isalpha())):
            return True
        at = low.find(literal, at + 1)
    return False


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All entries in the order of their ids, and by id."""

    entries: tuple[Signature, ...]
    by_id: Mapping[str, Signature]


def _weights(raw: Any, known: Iterable[str], where: str) -> dict[str, float]:
    if raw is None:
        return {}
    table = {raw: 1.0} if isinstance(raw, str) else raw
    codes = set(known)
    if not isinstance(table, dict) or not table:
        raise CatalogueError(f"{where}: expected a code or a table of weights, got {raw!r}")
    for code, weight in table.items():
        if code not in codes:
            raise CatalogueError(f"{where}: {code!r} is not a code of that axis")
        if not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise CatalogueError(f"{where}: the weight of {code} must be a number above 0, got {weight!r}")
    total = float(sum(table.values()))
    return {code: weight / total for code, weight in table.items()}


def _texts(raw: Any, where: str) -> tuple[str, ...]:
    if not isinstance(raw, list) or not raw or not all(isinstance(one, str) and one for one in raw):
        raise CatalogueError(f"{where}: expected a list of 1 or more strings, got {raw!r}")
    return tuple(raw)


def _choice(raw: Any, allowed: tuple[str, ...], where: str) -> str:
    if raw not in allowed:
        raise CatalogueError(f"{where}: expected one of {', '.join(allowed)}, got {raw!r}")
    return str(raw)


def _pattern(raw: Any, where: str, *, compiled: bool) -> LinePattern | None:
    if raw is None:
        return None
    if not isinstance(raw, str) or not raw:
        raise CatalogueError(f"{where}: expected a regular expression, got {raw!r}")
    if _NOT_LINEAR.search(raw):
        raise CatalogueError(f"{where}: look-around and back-references are not allowed: {raw!r}")
    pattern = LinePattern(raw)
    try:
        if compiled:
            pattern.compile()
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise CatalogueError(f"{where}: {text}, got {raw!r}") from error
    return pattern


def _when(raw: Any, where: str) -> When | None:
    if raw is None:
        return None
    if not isinstance(raw, dict) or not raw or set(raw) - set(_WHEN):
        raise CatalogueError(f"{where}: expected a table with some of {', '.join(_WHEN)}, got {raw!r}")
    for key, values in raw.items():
        if not isinstance(values, list) or not values or not all(isinstance(one, _WHEN[key]) for one in values):
            raise CatalogueError(f"{where}.{key}: expected a list of {_WHEN[key].__name__}, got {values!r}")
    return When(**{key: frozenset(values) for key, values in raw.items()})


def parse_entry(raw: Mapping[str, Any], family: str, where: str, *, compiled: bool = True) -> Signature:
    """The entry of one `[[signature]]` table.

    Args:
        raw: the table.
        family: the name of its file.
        where: file and entry, for error messages.
        compiled: whether its expression is compiled, and so checked, at once.

    Raises:
        CatalogueError: a field is missing, unknown or does not follow the format.
    """
    unknown = set(raw) - _KEYS
    if unknown:
        raise CatalogueError(f"{where}: unknown field {min(unknown)!r}")
    name = raw.get("id")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise CatalogueError(f"{where}: id: expected a family, a dot and a name in a-z, 0-9 and dashes, got {name!r}")
    if not name.startswith(f"{family}."):
        raise CatalogueError(f"{where}: id: expected the family {family!r}, which names the file, got {name!r}")
    where = f"{where} ({name})"
    axes = taxonomy.load()
    literals = tuple(one.lower() for one in _texts(raw.get("literals"), f"{where}: literals"))
    if short := [one for one in literals if len(one) < MIN_LITERAL]:
        raise CatalogueError(f"{where}: literals: {short[0]!r} is shorter than {MIN_LITERAL} characters")
    if other := [one for one in literals if not one.isascii()]:
        raise CatalogueError(
            f"{where}: literals: expected ASCII (other letters can stand in `pattern`), got {other[0]!r}"
        )
    for key in ("title", "source"):
        if not isinstance(raw.get(key), str) or not raw[key]:
            raise CatalogueError(f"{where}: {key}: expected a text, got {raw.get(key)!r}")
    retry = raw.get("retry")
    if retry is not None:
        _choice(retry, get_args(RetryOutlook), f"{where}: retry")
    return Signature(
        id=name,
        title=raw["title"],
        literals=literals,
        pattern=_pattern(raw.get("pattern"), f"{where}: pattern", compiled=compiled),
        role=cast("Role", _choice(raw.get("role"), get_args(Role), f"{where}: role")),
        strength=cast("Strength", _choice(raw.get("strength"), get_args(Strength), f"{where}: strength")),
        causes=_weights(raw.get("cause"), axes.causes, f"{where}: cause"),
        categories=_weights(raw.get("category"), (*axes.categories, "none"), f"{where}: category"),
        symptoms=_weights(raw.get("symptom"), (*axes.symptoms, "none"), f"{where}: symptom"),
        retry=cast("RetryOutlook | None", retry),
        source=raw["source"],
        examples=_texts(raw.get("examples"), f"{where}: examples"),
        near_misses=_texts(raw.get("near_misses"), f"{where}: near_misses"),
        when=_when(raw.get("when"), f"{where}: when"),
        needs=_texts(raw["needs"], f"{where}: needs") if "needs" in raw else (),
        unless=_texts(raw["unless"], f"{where}: unless") if "unless" in raw else (),
        family=family,
    )


def _expanded(raw: Any, words: Mapping[str, str], where: str) -> Any:
    """A text with its words; what is no text is refused later."""
    try:
        return _WORD.sub(lambda found: words[found[1]], raw) if isinstance(raw, str) else raw
    except KeyError as error:
        raise CatalogueError(f"{where}: {error} is not in [words] above it") from None


def _toml_files(folder: Traversable) -> Iterator[Traversable]:
    """The TOML files of a folder and its subfolders."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _toml_files(entry)
        elif entry.name.endswith(".toml"):
            yield entry


def read(folder: Traversable, *, compiled: bool = True) -> Catalogue:
    """The catalogue of a folder of TOML files and its subfolders; `compiled` as for `parse_entry`.

    Raises:
        CatalogueError: a file is not TOML, an entry does not follow the format, an id is used twice.
    """
    entries: list[Signature] = []
    for file in sorted(_toml_files(folder), key=lambda one: one.name):
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise CatalogueError(f"{file.name}: not TOML: {error}") from error
        family = file.name.removesuffix(".toml")
        if data.get("version") != VERSION or data.get("family") != family:
            raise CatalogueError(f"{file.name}: expected version = {VERSION} and family = {family!r}")
        words: dict[str, str] = {}
        for name, text in data.get("words", {}).items():
            words[name] = _expanded(text, words, f"{file.name}: words: {name}")
        for number, raw in enumerate(data.get("signature", ()), 1):
            where = f"{file.name}: entry {number}"
            found = raw | {"pattern": _expanded(raw["pattern"], words, where)} if "pattern" in raw else raw
            entries.append(parse_entry(found, family, where, compiled=compiled))
    entries.sort(key=lambda entry: entry.id)
    by_id = {entry.id: entry for entry in entries}
    if len(by_id) != len(entries):
        twice = next(one.id for one, other in itertools.pairwise(entries) if one.id == other.id)
        raise CatalogueError(f"the id {twice!r} is used twice")
    return Catalogue(entries=tuple(entries), by_id=by_id)


def check_references(catalogue: Catalogue) -> None:
    """Check that every id and family in `needs` and `unless` is in the catalogue.

    Raises:
        CatalogueError: one is not.
    """
    families = {entry.family for entry in catalogue.entries}
    for entry in catalogue.entries:
        for other in (*entry.needs, *entry.unless):
            known = other in catalogue.by_id or other in OBSERVATIONS
            if not known and not (other.endswith(".*") and other[:-2] in families):
                raise CatalogueError(f"{entry.id}: needs/unless names {other!r}, which is not in the catalogue")


@cache
def packaged() -> Catalogue:
    """The packaged catalogue; read once. Its expressions are compiled when they are used: tests check them."""
    return read(files("classifiers.data").joinpath("signatures"), compiled=False)
