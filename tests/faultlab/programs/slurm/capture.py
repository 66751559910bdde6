"""Runs jobs.toml on the Slurm lab and writes labelled cases: `python -m classifiers.faultlab.programs.slurm.capture OUT`.

Needs the lab's installation (tests/labs/install-slurm-lab) and root. What a case says of the end is what the controller
says of the job (scontrol show job); its log is the job's own output file.
"""

import json
import re
import sys
import time
import tomllib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from classifiers.faultlab import cases, identity, program
from tests.labs import slurm

HERE = Path(__file__).parent / "jobs"
STATES = {"FAILED": "failed", "TIMEOUT": "timeout", "OUT_OF_MEMORY": "out_of_memory", "NODE_FAIL": "node_fail", "PREEMPTED": "preempted",
          "CANCELLED": "cancelled", "BOOT_FAIL": "failed", "DEADLINE": "timeout"}  # fmt: skip
PREEMPTION = "PreemptType=preempt/partition_prio\nPreemptMode=CANCEL\n"
URGENT = ("PartitionName=urgent", "Nodes=ALL", "PriorityTier=10", "DefMemPerNode=64")


def field(text, name):
    found = re.search(rf"\b{name}=(\S+)", text)
    return found[1] if found else ""


def act(lab, job, kind, nodes):
    if kind == "lose":
        lab.lose_node(nodes[-1])
    elif kind == "down":
        lab.run("scontrol", "update", f"nodename={nodes[0]}", "state=down", "reason=kernel_upgrade")
    elif kind == "cancel":
        lab.run("scancel", str(job))
    elif kind == "preempt":
        lab.submit("urgent", "sleep 2", "-p", "urgent", "-w", nodes[0], "--exclusive")


def heal(lab, kind, nodes):
    if kind == "lose":
        lab.run("slurmd", "-N", nodes[-1])
    elif kind == "down":
        with suppress(slurm.SlurmError):  # it may be back by itself
            lab.run("scontrol", "update", f"nodename={nodes[0]}", "state=resume")


def hosts(text):
    names = []
    for word in re.findall(r"[a-z]+\d+|[a-z]+\[[\d,-]+\]", text):
        stem, _, inner = word.partition("[")
        if not inner:
            names.append(word)
        for part in filter(None, inner.rstrip("]").split(",")):
            first, _, last = part.partition("-")
            names += [f"{stem}{n}" for n in range(int(first), int(last or first) + 1)]
    return names


def one(lab, row, variant, seed):
    name = f"slurm/{row['name']}@{variant['name']}#{seed}"
    who = identity.identity(name, len(slurm.NODES))
    names = dict(zip(slurm.NODES, who.hosts, strict=True))
    values = {"train": f"{lab.share}/train.py", "group": f"{lab.share}/group.py"}
    script = variant["script"]
    for key, value in values.items():
        script = script.replace("{" + key + "}", value)
    job = lab.submit(who.project, script, *variant.get("options", ()))
    kind, nodes = variant.get("act"), []
    if kind:
        lab.wait_for(job, ["RUNNING"], 60)
        nodes = hosts(field(lab.run("scontrol", "show", "job", str(job)), "NodeList"))
        time.sleep(2.5)
        act(lab, job, kind, nodes)
    state = lab.wait_for(job, list(STATES), 240)
    time.sleep(0.6)
    told = lab.run("scontrol", "show", "job", str(job))
    if kind:
        heal(lab, kind, nodes)
    text = (lab.share / "logs" / f"{who.project}-{job}.out").read_text(encoding="utf-8", errors="replace")
    code, _, number = field(told, "ExitCode").partition(":")
    plain = identity.scrubber(who, lab.share, None, {str(lab.share.parent): who.folder}, ())

    def scrub(text):
        return re.sub(r"\bgpu[1-4]\b", lambda found: names[found[0]], plain(text))

    merged = {**row, **variant, **{key: {**row.get(key, {}), **variant.get(key, {})} for key in ("labels", "ok")}}
    labels = program._labels(merged, program._Place(HERE / "jobs.toml", row["name"]))
    root = merged["root"]
    lines = [line for line in scrub(text).split("\n") if root.get("line") and re.search(root["line"], line)]
    if root.get("line") and not lines:
        raise cases.NotAsDeclared(f"{name}: no line matches {root['line']!r} in\n{text[-1500:]}")
    wanted = variant.get("status") or row.get("status")
    if wanted and STATES[state] != wanted:
        raise cases.NotAsDeclared(f"{name}: ended {state}\n{text[-800:]}")
    lines.sort(key=lambda line: line.startswith((" ", "\t")))

    def moment(key):
        return f"{field(told, key)}Z" if field(told, key) not in {"", "Unknown"} else None

    event = {
        "schema": "job-completion/1", "cluster": who.cluster, "job_id": who.job_id if who.job_id.isdigit() else str(job), "attempt": 0,
        "name": who.project, "user": who.user, "team": who.team, "queue": who.queue, "framework": "pytorch" if "{group}" in variant["script"] else None,
        "status": STATES[state], "exit_code": int(code or 0), "signal": int(number) if 1 < int(number or 0) <= 64 else None, "scheduler": "slurm",
        "reason": field(told, "Reason"), "submitted_at": moment("SubmitTime"), "started_at": moment("StartTime"), "ended_at": moment("EndTime"),
        "time_limit_s": 60 if "--time=1" in variant.get("options", ()) else None, "nodes": [names.get(node, node) for node in hosts(field(told, "NodeList"))],
        "logs": [{"rank": None, "node": None, "stream": "stdout", "tail": cases.tail(scrub(text))}],
    }  # fmt: skip
    return {
        "id": f"lab-slurm-{row['name']}-{variant['name']}-{seed}", "group": f"slurm.{row['name']}.{variant['name']}", "kind": f"slurm-{row['name']}-{variant['name']}",
        "event": {key: value for key, value in event.items() if value is not None},
        "labels": {**labels, "root_rank": None if root["rank"] == "all" else root["rank"], "root_line": lines[0].strip("\r ") if lines else None},
        "provenance": {"origin": "captured", "program": f"slurm/{row['name']}", "variant": variant["name"], "run": name, "path": f"slurm.{row['name']}",
                       "framework": None, "version": "24.11", "launcher": "slurm", "ranks": max(script.count("srun"), 1), "seed": seed, "logs": "console",
                       "when": datetime.now(tz=UTC).date().isoformat()},
    }  # fmt: skip


def main():
    out = Path(sys.argv[1])
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    done = {json.loads(line)["provenance"]["run"] for line in out.read_text().splitlines()} if out.exists() else set()
    rows = tomllib.loads((HERE / "jobs.toml").read_text(encoding="utf-8"))["program"]
    slurm.SLURM_CONF = slurm.SLURM_CONF.replace("JobRequeue=1\n", "JobRequeue=1\n" + PREEMPTION)
    with slurm.cluster("127.0.0.1:9", "jobs") as lab, out.open("a", encoding="utf-8") as stream:
        lab.run("scontrol", "create", *URGENT)
        for name in ("train.py", "group.py"):
            (lab.share / name).write_bytes((HERE / name).read_bytes())
        for row in rows:
            for variant in row["variant"]:
                for seed in variant.get("seeds", row.get("seeds", [3])):
                    run = f"slurm/{row['name']}@{variant['name']}#{seed}"
                    if run in done or not re.search(only, run):
                        continue
                    began = time.monotonic()
                    try:
                        stream.write(cases.line_of(one(lab, row, variant, seed)) + "\n")
                        stream.flush()
                        print(f"{run}: {time.monotonic() - began:.0f} s", flush=True)
                    except (cases.NotAsDeclared, slurm.SlurmError, OSError, ValueError) as error:
                        print(f"left out: {run}: {error}", flush=True)


if __name__ == "__main__":
    main()
