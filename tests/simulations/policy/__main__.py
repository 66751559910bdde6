"""`python -m tests.simulations.policy`: the value of the policy in a simulated fleet with known causes.

Prints Markdown tables and optionally writes all figures as JSON. The same seeds give the same figures.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from service.recommend.policy import built_in
from tests.simulations.policy import compare
from tests.simulations.policy.compare import OURS, TRUE, Interval, Seeds
from tests.simulations.policy.verdicts import packaged


def _told(value: Interval, digits: int = 0, *, share: bool = False) -> str:
    if share:
        return f"{value.mean:.0%} ({value.low:.0%}–{value.high:.0%})"
    return f"{value.mean:,.{digits}f} ({value.low:,.{digits}f}–{value.high:,.{digits}f})"


def table(seeds: Seeds) -> str:
    """The policies side by side: means over seeds, 95 % intervals in brackets."""
    lines = [
        "| policy | resubmits | GPU-hours wasted | less than blind | jobs rescued | of oracle's | hours to rescue |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in seeds[0]:
        hours = compare.hours_to_rescue(seeds, name)
        wasted = compare.interval([one[name].wasted for one in seeds])
        cells = (
            name,
            f"{compare.interval([one[name].retries for one in seeds]).mean:,.0f}",
            _told(wasted),
            "–" if not wasted.mean or name == compare.BLIND else _told(compare.less_wasted(seeds, name)),
            _told(compare.interval([one[name].rescued for one in seeds])),
            _told(compare.of_oracle(seeds, name), share=True),
            "–" if hours is None else f"{hours:.1f}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def worst(varied: Mapping[tuple[str, float], Seeds]) -> str:
    """The worst parameter and factor for each target."""
    lines = ["| target | worst with | figure |", "|---|---|---|"]
    ratios = {key: compare.less_wasted(seeds, OURS) for key, seeds in varied.items()}
    shares = {key: compare.of_oracle(seeds, OURS) for key, seeds in varied.items()}
    trues = {key: compare.of_oracle(seeds, TRUE) for key, seeds in varied.items()}
    for target, found, share in (
        (f"at least {compare.LEAST_RATIO:.0f} times less wasted than blind", ratios, False),
        (f"at least {compare.LEAST_SHARE:.0%} of the oracle's rescues, measured verdicts", shares, True),
        (f"at least {compare.LEAST_SHARE_TRUE:.0%} of them, true verdicts", trues, True),
    ):
        (name, factor), value = min(found.items(), key=lambda one: one[1].mean)
        lines.append(f"| {target} | {name} × {factor:g} | {_told(value, share=share)} |")
    return "\n".join(lines)


def _plain(seeds: Seeds) -> list[dict[str, Any]]:
    return [{name: asdict(figures) for name, figures in one.items()} for one in seeds]


def main(argv: list[str] | None = None) -> int:
    """Run the simulation and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulations.policy.__main__", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--varied-seeds", type=int, default=5, help="of the varied fleets")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--base-only", action="store_true", help="leave out the parameters half and half as much again")
    parser.add_argument("--json", type=Path, help="write every seed's figures here")
    args = parser.parse_args(argv)
    base = compare.base(args.seeds, args.workers)
    failed = compare.interval([one["none"].failed for one in base]).mean
    print(f"policy {built_in().version}; verdicts as measured: {packaged().about}")
    print(f"{args.seeds} seeds of 28 days, {failed:.0f} jobs that fail in each\n")
    print(table(base))
    varied = {} if args.base_only else compare.varied(args.varied_seeds, args.workers)
    if varied:
        about = f"{len(varied)} fleets, {args.varied_seeds} seeds each"
        print(f"\nEvery parameter × 0.5 and × 1.5 ({about}):\n\n{worst(varied)}")
    if args.json is not None:
        result = {f"{name} x {factor:g}": _plain(seeds) for (name, factor), seeds in varied.items()}
        args.json.write_bytes(orjson.dumps({"base": _plain(base), "varied": result}, option=orjson.OPT_INDENT_2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
