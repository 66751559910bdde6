"""`make bench`: speed and memory, absolute and as ratios within this one run. Numbers, not tests.

usage: python -m tests.bench [classify|pipeline|reclassify|logs|page|instructions|backlog|browser ...]
"""

import argparse
import os
import platform
from collections.abc import Callable, Sequence

from service import native_modules

# Before the modules are imported, also in the processes that a section starts.
native_modules.use()

from tests.bench import backlog, browser, classify, instructions, log_storage, page, pipeline, reclassify  # noqa: E402

SECTIONS: dict[str, Callable[[], object]] = {
    "classify": classify.run,
    "pipeline": pipeline.run,
    "reclassify": reclassify.run,
    "logs": log_storage.run,
    "page": page.run,
    "instructions": instructions.run,
    "backlog": backlog.run,
    "browser": browser.run,
}
DEFAULT = (
    "classify",
    "pipeline",
    "reclassify",
    "logs",
)  # pages take an hour (make bench-pages), a backlog half an hour; instructions need Valgrind, browser needs Chromium


def machine() -> str:
    """Return the processor, memory and Python version of this machine."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:  # noqa: PTH123 -- not a path of ours
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, Python {platform.python_version()}"


def sections_of(argv: Sequence[str] | None) -> list[str]:
    """Return the sections to run, in the given order; the default ones without arguments. Exits with 2 if unknown."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    # Not `choices`: below Python 3.12 argparse checks the empty list of an absent argument against them.
    parser.add_argument(
        "section", nargs="*", help=f"one or more of: {', '.join(SECTIONS)}; by default: {', '.join(DEFAULT)}"
    )
    given: list[str] = parser.parse_args(argv).section
    unknown = [name for name in given if name not in SECTIONS]
    if unknown:
        parser.error(f"unknown section {unknown[0]!r} (choose from {', '.join(SECTIONS)})")
    return given or list(DEFAULT)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the given sections, or the default ones."""
    names = sections_of(argv)
    print(machine())
    print("with compiled modules" if native_modules.in_use() else "without compiled modules")
    for name in names:
        print(f"\n{name}")
        SECTIONS[name]()


if __name__ == "__main__":
    main()
