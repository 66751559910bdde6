"""Builds the commands of a plan: the arguments and environment of each process, by launcher."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faultlab.program import Plan
from tests.faultlab.synthetic_identity import Identity


@dataclass(frozen=True, slots=True)
class Start:
    """One process to start; `rank` None is a launcher. `script` is the index of the Python program in `words`."""

    words: tuple[str, ...]
    env: Mapping[str, str]
    rank: int | None
    node: int
    python: bool


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the text with its placeholders replaced; other braces are kept."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _ranks(plan: Plan, values: Mapping[str, str], program: tuple[str, ...]) -> list[Start]:
    each = max(plan.ranks // plan.nodes, 1)
    starts = []
    for rank in range(plan.ranks):
        if rank in plan.skip_ranks:
            continue
        node = min(rank // each, plan.nodes - 1)
        env = {
            "RANK": str(rank),
            "WORLD_SIZE": str(plan.ranks),
            "LOCAL_RANK": str(rank % each),
            "LOCAL_WORLD_SIZE": str(each),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": values["port"],
            "SLURM_PROCID": str(rank),
            "SLURM_NTASKS": str(plan.ranks),
            "SLURM_LOCALID": str(rank % each),
        }
        env |= {key: fill(value, values) for key, value in plan.rank_env.get(rank, {}).items()}
        starts.append(Start(program, env, rank, node, python=True))
    return starts


def _torchrun(plan: Plan, values: Mapping[str, str], logs: str, folder: Path) -> list[Start]:
    each = max(plan.ranks // plan.nodes, 1)
    starts = []
    for node in range(plan.nodes):
        words = [values["python"], str(Path(values["python"]).with_name("torchrun")), f"--nproc-per-node={each}"]
        given = " ".join(plan.launcher_args)
        if "--nnodes" not in given:
            words.append(f"--nnodes={plan.nodes}")
        if "--rdzv" not in given and "--standalone" not in given:
            words += [f"--node-rank={node}"] if plan.nodes > 1 else []
            words += ["--master-addr=127.0.0.1", f"--master-port={values['port']}"]
        if logs != "console":
            words += [f"--log-dir={folder / str(node)}", "--tee=3" if logs == "tee" else "--redirects=3"]
        words += [fill(word, values).replace("{node}", str(node)) for word in plan.launcher_args]
        words += [values["script"], *(fill(word, values) for word in plan.args)]
        starts.append(Start(tuple(words), {}, None, node, python=True))
    return starts


def _mpirun(plan: Plan, values: Mapping[str, str], program: tuple[str, ...]) -> Start:
    own = tuple(fill(word, values) for word in plan.launcher_args)
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    words = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(plan.ranks), *own, *program)
    return Start(words, env, None, 0, python=False)


def _horovodrun(plan: Plan, values: Mapping[str, str], args: tuple[str, ...]) -> Start:
    own = tuple(fill(word, values) for word in plan.launcher_args)
    number = () if "-np" in own else ("-np", str(plan.ranks))
    nics = () if "--network-interfaces" in own else ("--network-interfaces", "lo")
    words = (str(Path(values["python"]).with_name("horovodrun")), "--gloo", *number, *nics, *own)
    return Start((*words, "python", "-u", values["script"], *args), {}, None, 0, python=False)


def starts(  # noqa: PLR0911 -- one return a launcher
    plan: Plan, who: Identity, values: Mapping[str, str], logs: str, folder: Path
) -> list[Start]:
    """Return the processes of a run, in start order.

    Args:
        plan: program and variant.
        who: the run's identity.
        values: placeholders (python, script, port ...).
        logs: ranks, console or tee.
        folder: the folder for the logs of torchrun's workers.
    """
    args = tuple(fill(word, values) for word in plan.args)
    python = (values["python"], "-u", values.get("script", ""), *args)
    match plan.launcher:
        case "python":
            return [Start(python, {}, 0, 0, python=True)]
        case "ranks":
            return _ranks(plan, values, python)
        case "torchrun":
            return _torchrun(plan, values, logs, folder)
        case "mpirun":
            return [_mpirun(plan, values, python)]
        case "horovodrun":
            return [_horovodrun(plan, values, args)]
        case "bash":
            return [Start(("bash", values["script"], *args), {}, 0, 0, python=False)]
        case _:
            words = tuple(fill(word, values) for word in plan.command)
            return [Start((*words, *args), {}, 0 if plan.ranks == 1 else None, 0, python=False)]
