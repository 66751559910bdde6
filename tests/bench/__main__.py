"""`make bench`: speed and memory, absolute and as ratios within this one run. Numbers, not tests.

usage: python -m tests.bench [pipeline|classify|page ...]
"""

import argparse
import os
import platform
from collections.abc import Callable

from tests.bench import classify, page, pipeline

SECTIONS: dict[str, Callable[[], object]] = {
    "classify": classify.run,
    "pipeline": pipeline.run,
    "page": page.run,
}


def machine() -> str:
    """What this ran on."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as info:  # noqa: PTH123 -- not a path of ours
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, Python {platform.python_version()}"


def main() -> None:
    """Run the sections asked for, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("section", nargs="*", choices=[*SECTIONS, []], default=list(SECTIONS))
    args = parser.parse_args()
    print(machine())
    for name in args.section:
        print(f"\n{name}")
        SECTIONS[name]()


if __name__ == "__main__":
    main()
