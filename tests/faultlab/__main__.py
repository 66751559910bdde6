"""The lab's command: `python -m tests.faultlab list|run|capture|pack|check|relabel|build`."""

import argparse
import atexit
import json
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.faultlab import capture, case_files, cases, check, environment, induced_faults, program
from tests.faultlab.fork_server_pool import Zygotes
from tests.faultlab.program import Plan

CAPTURED = Path(__file__).parents[2] / "classifiers" / "data" / "captured"


def _chosen(plans: Sequence[Plan], patterns: Sequence[str]) -> list[Plan]:
    return [plan for plan in plans if not patterns or any(re.search(pattern, plan.id) for pattern in patterns)]


def _list(args: argparse.Namespace, plans: Sequence[Plan]) -> int:
    for plan in plans:
        print(
            plan.id,
            plan.launcher,
            plan.ranks,
            plan.labels["cause"],
            plan.labels["category"],
            plan.labels["symptom"],
            plan.path,
        )
    programs = {plan.program for plan in plans}
    print(f"{len(programs)} programs, {len(plans)} variants, {sum(len(p.seeds) for p in plans)} runs", file=sys.stderr)
    return 0


def _lab(args: argparse.Namespace) -> capture.Lab:
    if args.fresh:
        return capture.Lab()
    zygotes = Zygotes()
    atexit.register(zygotes.close)
    return capture.Lab(zygotes)


def _run(args: argparse.Namespace, plans: Sequence[Plan]) -> int:
    lab, bad = _lab(args), 0
    for plan in plans:
        for seed in plan.seeds[:1] if not args.all_seeds else plan.seeds:
            began = time.monotonic()
            print(f"=== {plan.id}#{seed}")
            try:
                captured = lab.run(plan, seed)
                for stream in captured.streams:
                    print(f"--- rank {stream.rank} {stream.node} {stream.name}\n{stream.text}")
                for line in captured.kernel:
                    print("--- kernel", line)
                made = cases.case(captured)
                print("--- root", made["labels"]["root_rank"], made["labels"]["root_line"])
                print("--- end", made["event"]["status"], made["event"].get("exit_code"), made["event"].get("signal"))
            except (cases.NotAsDeclared, induced_faults.Impossible, environment.NoEnvironment) as error:
                bad += 1
                print(f"--- not as declared: {error}")
            print(f"--- {time.monotonic() - began:.1f} s", flush=True)
    return 1 if bad else 0


def _runs(plans: Sequence[Plan]) -> Iterator[tuple[Plan, int]]:
    """Yield all runs, ordered so that a run of every program comes before any second run."""
    turn: dict[str, int] = {}
    runs = []
    for plan in plans:
        for seed in plan.seeds:
            turn[plan.program] = turn.get(plan.program, 0) + 1
            runs.append((turn[plan.program], plan, seed))
    for _, plan, seed in sorted(runs, key=lambda run: run[0]):
        yield plan, seed


def _capture(args: argparse.Namespace, plans: Sequence[Plan]) -> int:
    out = Path(args.output)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if out.exists() and not args.again:
        done = {json.loads(line)["provenance"]["run"] for line in out.read_text(encoding="utf-8").splitlines()}
    lab, bad, began = _lab(args), 0, time.monotonic()
    with out.open("w" if args.again else "a", encoding="utf-8") as file:
        for plan, seed in _runs(plans):
            if f"{plan.id}#{seed}" in done:
                continue
            if args.minutes and time.monotonic() - began > args.minutes * 60:
                print("the time is up", file=sys.stderr)
                break
            try:
                file.write(cases.line_of(cases.case(lab.run(plan, seed))) + "\n")
                file.flush()
            except (cases.NotAsDeclared, induced_faults.Impossible, environment.NoEnvironment) as error:
                bad += 1
                print(f"left out: {error}", file=sys.stderr)
            except (OSError, subprocess.SubprocessError, ValueError):
                bad += 1
                print(f"left out: {plan.id}#{seed}", file=sys.stderr)
                traceback.print_exc()
    return 1 if bad else 0


def _relabel(args: argparse.Namespace, plans: Sequence[Plan]) -> int:
    by_run = {f"{plan.id}#{seed}": plan for plan in plans for seed in plan.seeds}
    file, bad = Path(args.file), 0
    kept: list[str] = []
    for text in case_files.read_lines(file):
        case = json.loads(text)
        plan = by_run.get(case["provenance"]["run"])
        try:
            kept.append(cases.line_of(case if plan is None else cases.relabel(case, plan)))
        except cases.NotAsDeclared as error:
            bad += 1
            print(f"left out: {str(error).splitlines()[0]}", file=sys.stderr)
    case_files.write_lines(file, kept)
    return 1 if bad else 0


def _pack(args: argparse.Namespace) -> int:
    """Add the cases of a file to a packaged family; a case of the same run is replaced."""
    family = CAPTURED / f"{args.family}.jsonl.zst"
    lines = [*(case_files.read_lines(family) if family.exists() else ()), *case_files.read_lines(Path(args.file))]
    by_run = {json.loads(line)["provenance"]["run"]: line for line in lines}
    case_files.write_lines(family, by_run.values())
    print(f"{len(by_run)} cases in {family}")
    return 0


def _check(args: argparse.Namespace, plans: Sequence[Plan]) -> int:
    lab, bad = _lab(args), 0
    chosen = check.choose(check.read(args.corpus), plans, args.count, cheap=args.cheap, seed=args.seed)
    for case, plan in chosen:
        compared = check.again(lab, case, plan)
        bad += compared.wrong is not None
        result = (
            f"DIFFERS: {compared.wrong}"
            if compared.wrong
            else f"skipped: {compared.skipped}"
            if compared.skipped
            else "holds"
        )
        print(f"{compared.run}: {result}", flush=True)
    print(f"{len(chosen)} runs, {bad} differ")
    return 1 if bad or not chosen else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 for success, 1 if a run differs from its declaration, 2 for a usage error."""
    parser = argparse.ArgumentParser(prog="python -m tests.faultlab", description=__doc__)
    parser.add_argument("--programs", type=Path, default=program.PROGRAMS, help="where the families lie")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, help_ in (
        ("list", "what is declared"),
        ("run", "run once and show all"),
        ("capture", "run and write cases"),
    ):
        sub = commands.add_parser(name, help=help_)
        sub.add_argument("pattern", nargs="*", help="regex on family/program@variant")
        sub.add_argument("--fresh", action="store_true", help="start every interpreter anew")
        if name == "run":
            sub.add_argument("--all-seeds", action="store_true")
        if name == "capture":
            sub.add_argument("--output", required=True, help="a .jsonl file; runs already in it are left out")
            sub.add_argument("--again", action="store_true", help="start the file anew")
            sub.add_argument("--minutes", type=float, default=0)
    sub = commands.add_parser("check", help="run captured programs again and compare")
    sub.add_argument("pattern", nargs="*", help="regex on family/program@variant")
    sub.add_argument("--count", type=int, default=20)
    sub.add_argument("--cheap", action="store_true", help="only those that need no heavy framework")
    sub.add_argument("--seed", type=int, default=None, help="of the choice")
    sub.add_argument("--corpus", type=Path, default=CAPTURED)
    sub.add_argument("--fresh", action="store_true", help="start every interpreter anew")
    sub = commands.add_parser("relabel", help="bring captured cases to the present declarations, without a new run")
    sub.add_argument("file")
    sub.set_defaults(pattern=[])
    sub = commands.add_parser("pack", help="put captured cases among those that training uses")
    sub.add_argument("file", help="what capture wrote")
    sub.add_argument("family", help="name of the packed file, without suffix")
    build = commands.add_parser("build", help="make an environment")
    build.add_argument("name")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that running processes are ended and cleaned up
    if args.command == "build":
        print(environment.build(args.name))
        return 0
    if args.command == "pack":
        return _pack(args)
    try:
        plans = _chosen(program.load(args.programs), args.pattern)
    except program.DeclarationError as error:
        print(error, file=sys.stderr)
        return 2
    return {"list": _list, "run": _run, "capture": _capture, "check": _check, "relabel": _relabel}[args.command](
        args, plans
    )


if __name__ == "__main__":
    raise SystemExit(main())
