"""Reads operators' own signatures and layers them over the packaged catalogue.

A file, of any name that ends in `.toml`:

    version = 1

    [[signature]]
    id = "site.scratch-quota"                  # a family, a dot, a name: a-z 0-9 and dashes
    label = "Quota of /scratch exceeded"       # what the message means, for people
    side = "user"                              # hardware | system | user; may be left out where `cause` is given
    cause = "USER.2"                           # or weights; may be left out where `side` is given
    role = "initiating"                        # initiating | cascade | teardown | context
    action = "Delete old checkpoints in /scratch, or ask storage@example.org for a larger quota."
    literals = ["scratch: quota exceeded"]     # any one of them must be in the line, case ignored
    pattern = '...'                            # optional regular expression, searched in that line
    examples = ["scratch: quota exceeded for user ana (2.1T of 2.0T)"]   # each must match
    near_misses = ["scratch: quota checked, 1.2T of 2.0T"]               # similar lines; none may match

Optional as well: strength (default: decisive), category, symptom, retry, when, needs, unless; `classifiers.signatures`
explains them, and the limits of literals and patterns. An entry with the id of a packaged one replaces it. Packaged
entries that match one of the examples count only as context where the own entry matches too: the own one decides.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from classifiers import signatures, taxonomy
from classifiers.signatures import Catalogue, CatalogueError, Signature
from classifiers.taxonomy import Side
from service import toml_positions
from service.errors import ConfigurationError
from service.setting_texts import toml_text

VERSION: Final = 1
# Judgement: far above any catalogue written by hand, and small enough to be read and checked at once.
FILES_MOST: Final = 200
ENTRIES_MOST: Final = 1_000
PATTERN_MOST: Final = 1_000  # characters
TEXT_MOST: Final = 500
_OWN_KEYS: Final = frozenset({"label", "side", "action"})
_REQUIRED: Final = ("id", "label", "role", "action", "literals", "examples", "near_misses")
_FIELDS: Final = frozenset(
    {*_REQUIRED, "side", "cause", "pattern", "strength", "category", "symptom", "retry", "when", "needs", "unless"}
)
_STRENGTH: Final = "decisive"


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """One own entry.

    Attributes:
        signature: the entry as the catalogue holds it; its title is the label.
        side: the side that it names, None if its causes are of several sides.
        action: what people should do.
        file: the name of its file.
        replaces: whether it replaces a packaged entry.
    """

    signature: Signature
    side: Side | None
    action: str
    file: str
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class LayeredCatalogue:
    """The packaged catalogue with the own entries; `own` by id."""

    catalogue: Catalogue
    own: Mapping[str, OperatorEntry]

    def own_only(self) -> Catalogue:
        """Return the own entries as a catalogue."""
        found = {name: one.signature for name, one in self.own.items()}
        return Catalogue(entries=tuple(found[name] for name in sorted(found)), by_id=found)


def actions_of(layered: LayeredCatalogue, matched: Iterable[str | None]) -> tuple[OperatorEntry, ...]:
    """Return the own entries among matched signatures, each once, in their order."""
    return tuple(layered.own[name] for name in dict.fromkeys(matched) if name is not None and name in layered.own)


def packaged_only() -> LayeredCatalogue:
    """Return the packaged catalogue without own entries."""
    return LayeredCatalogue(signatures.packaged(), {})


def read(folder: Path) -> LayeredCatalogue:
    """Read a folder of own entries, with its subfolders, and layer them over the packaged catalogue.

    Raises:
        CatalogueError: the message names file, entry and field, and what was expected.
    """
    files = files_of(folder)
    if len(files) > FILES_MOST:
        raise CatalogueError(f"{folder}: expected at most {FILES_MOST} files, got {len(files)}")
    packaged = signatures.packaged()
    own: dict[str, OperatorEntry] = {}
    for path in files:
        name = str(path.relative_to(folder))
        for number, raw in enumerate(_tables(path, name), 1):
            entry = _entry(raw, name, f"{name}: entry {number}", packaged)
            before = own.get(entry.signature.id)
            if before is not None:
                raise CatalogueError(f"{name}: entry {number} ({entry.signature.id}): id: used in {before.file} too")
            own[entry.signature.id] = entry
    if len(own) > ENTRIES_MOST:
        raise CatalogueError(f"{folder}: expected at most {ENTRIES_MOST:,} entries, got {len(own):,}")
    by_id = {name: _yielding(entry, own) for name, entry in packaged.by_id.items()}
    by_id |= {name: entry.signature for name, entry in own.items()}
    entries = tuple(sorted(by_id.values(), key=lambda entry: entry.id))
    catalogue = Catalogue(entries=entries, by_id=by_id)
    try:
        signatures.check_references(catalogue)
    except CatalogueError as error:
        where = next((f"{one.file}: " for name, one in own.items() if str(error).startswith(f"{name}:")), "")
        raise CatalogueError(f"{where}{error}") from None
    return LayeredCatalogue(catalogue, own)


def _yielding(packaged: Signature, own: Mapping[str, OperatorEntry]) -> Signature:
    """Return a packaged entry that counts only as context next to the own entries whose examples it matches."""
    stronger = [name for name, one in own.items() if any(map(packaged.matches, one.signature.examples))]
    return replace(packaged, unless=(*packaged.unless, *stronger)) if stronger else packaged


def files_of(folder: Path) -> list[Path]:
    """Return the TOML files of a folder and its subfolders; names that begin with a dot are left out.

    Raises:
        CatalogueError: there is no such folder, or it can't be read.
    """
    if not folder.is_dir():
        raise CatalogueError(f"{folder}: no such folder")
    try:
        found = sorted(folder.rglob("*.toml"))
    except OSError as error:
        raise CatalogueError(f"{folder}: {error.strerror or error}") from None
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _tables(path: Path, name: str) -> list[Mapping[str, Any]]:
    try:
        content = toml_positions.loads(toml_text(path, name))
    except ConfigurationError as error:
        raise CatalogueError(error.detail) from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(f"{name}: not TOML: {error}") from None
    if "version" not in content:
        raise CatalogueError(f"{name}: version: this field is required (version = {VERSION})")
    if content["version"] != VERSION:
        raise CatalogueError(f"{name}: version: expected {VERSION}, got {content['version']!r}")
    if unknown := set(content) - {"version", "signature"}:
        raise CatalogueError(f"{name}: unknown field {min(unknown)!r}")
    tables = content.get("signature", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise CatalogueError(f"{name}: signature: expected [[signature]] tables")
    return tables


def _entry(raw: Mapping[str, Any], file: str, where: str, packaged: Catalogue) -> OperatorEntry:
    """Return the entry of one table; its examples are checked against it."""
    name = raw.get("id")
    where = f"{where} ({name})" if isinstance(name, str) else where
    for key in _REQUIRED:
        if key not in raw:
            others = sorted(set(raw) - _FIELDS)
            also = f"; unknown field {others[0]!r}" if others else ""
            raise CatalogueError(f"{where}: {key}: this field is required{also}")
    for key in ("label", "action"):
        if not isinstance(raw[key], str) or not 0 < len(raw[key].strip()) <= TEXT_MOST:
            raise CatalogueError(f"{where}: {key}: expected a text of at most {TEXT_MOST} characters")
    pattern = raw.get("pattern")
    if isinstance(pattern, str) and len(pattern) > PATTERN_MOST:
        raise CatalogueError(f"{where}: pattern: expected at most {PATTERN_MOST:,} characters, got {len(pattern):,}")
    side, cause = _side_and_cause(raw, where)
    if unknown := (set(raw) & {"title", "source"}):
        raise CatalogueError(f"{where}: unknown field {min(unknown)!r}")
    table = {key: value for key, value in raw.items() if key not in _OWN_KEYS} | {
        "title": raw["label"],
        "source": file,
        "cause": cause,
        "strength": raw.get("strength", _STRENGTH),
    }
    family = str(name).partition(".")[0]
    signature = signatures.parse_entry(table, family, where.removesuffix(f" ({name})"))
    _check_examples(signature, where)
    return OperatorEntry(signature, side, raw["action"].strip(), file, replaces=signature.id in packaged.by_id)


def _side_and_cause(raw: Mapping[str, Any], where: str) -> tuple[Side | None, Any]:
    """Return the side, and a cause or weights of causes: those of the side, by their published shares, without any."""
    side, cause = raw.get("side"), raw.get("cause")
    axes = taxonomy.load()
    if side is not None and side not in taxonomy.SIDES:
        raise CatalogueError(f"{where}: side: expected one of {', '.join(taxonomy.SIDES)}, got {side!r}")
    if cause is None:
        if side is None:
            raise CatalogueError(f"{where}: cause: this field or side is required")
        own = {code: entry.share or 1.0 for code, entry in axes.causes.items() if entry.extra["side"] == side}
        return cast("Side", side), own
    codes = [cause] if isinstance(cause, str) else list(cause) if isinstance(cause, dict) else []
    sides = {axes.side_of(code) for code in codes if code in axes.causes}
    if side is not None and sides - {side}:
        raise CatalogueError(f"{where}: side: {side!r} is not the side of {', '.join(codes)}")
    return sides.pop() if len(sides) == 1 else None, cause


def _check_examples(signature: Signature, where: str) -> None:
    for number, text in enumerate(signature.examples, 1):
        if not signature.matches(text):
            raise CatalogueError(f"{where}: examples: example {number} does not match the entry: {text!r}")
    for number, text in enumerate(signature.near_misses, 1):
        if signature.matches(text):
            raise CatalogueError(f"{where}: near_misses: near miss {number} matches the entry: {text!r}")
