"""Uses the modules that `deploy/build_native.py` compiled, where they fit the sources; the results are the same.

A folder of this Python environment holds them with a list of the sources that they were made of. Where it is missing,
or a source has changed since, Python runs the sources as ever.
"""

import sys
import sysconfig
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import orjson

MANIFEST: Final = "manifest.json"
ROOT: Final = Path(__file__).parents[1]
_forbidden = False


class _NativeFinder(MetaPathFinder):
    """Finds the compiled modules before their sources are found."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = files

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol of the import system
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Where a module is, None for one that is not compiled."""
        file = self._files.get(fullname)
        return None if file is None else spec_from_file_location(fullname, file)


def folder_of_environment() -> Path:
    """The folder that `make install` compiles to, in the Python environment that it runs in."""
    return Path(sys.prefix) / "share" / "faultline" / "native"


def suffix() -> str:
    """How files of compiled modules end for this Python."""
    return str(sysconfig.get_config_var("EXT_SUFFIX"))


def digest(source: Path) -> str:
    """A hash of a source file."""
    return blake2b(source.read_bytes(), digest_size=16).hexdigest()


def forbid() -> None:
    """Run the sources in this process whatever is compiled: tests replace parts of them, and measure which they run."""
    global _forbidden  # noqa: PLW0603 - one interpreter imports a module once
    _forbidden = True


def files_of(folder: Path) -> dict[str, Path] | None:
    """The compiled modules of a folder by name; None where they do not fit the sources or this Python."""
    try:
        manifest: dict[str, Any] = orjson.loads((folder / MANIFEST).read_bytes())
        fits = manifest["suffix"] == suffix() and all(
            digest(ROOT / source) == known for source, known in manifest["sources"].items()
        )
        return {name: folder / file for name, file in manifest["modules"].items()} if fits else None
    except (OSError, KeyError, orjson.JSONDecodeError):
        return None


def use(folder: Path | None = None) -> bool:
    """Import the compiled modules of a folder from now on; False where they do not fit, or sources are loaded."""
    if _forbidden:
        return False
    files = files_of(folder or folder_of_environment())
    if files is None or not sys.modules.keys().isdisjoint(files):
        return False
    sys.meta_path.insert(0, _NativeFinder(files))
    return True


def in_use() -> bool:
    """Whether compiled modules are imported."""
    return any(isinstance(finder, _NativeFinder) for finder in sys.meta_path)
