"""`nvidia-smi -q`: what a GPU reports of its own state, as node events.

Source: the manual page of nvidia-smi (`-q`, sections "ECC Errors", "Retired Pages", "Remapped Rows", "Clocks Event
Reasons", drivers 450 to 590). Only volatile counters are read: they count since the driver was loaded; aggregate ones
count over the life of the GPU.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from classifiers.contracts import NotDiagnostic

# Limits of what is read and shown of one file (judgement: far more than a real one has).
_MOST_LINES: Final = 20_000
_MOST_EVENTS: Final = 64
_GPU: Final = re.compile(r"^GPU (?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$")
_ATTACHED: Final = re.compile(r"^Attached GPUs {0,60}: (?P<count>\d{1,4})\s{0,2}$")
_HEAD_LINES: Final = 50  # in which the number of GPUs is looked for
_FIELD: Final = re.compile(r"^(?P<indent> *)(?P<name>[A-Z][\w ()./-]{1,60}?)\s*(?::\s*(?P<value>\S.{0,120}))?\s*$")
_LOST: Final = re.compile(
    r"GPU is lost|GPU has fallen off the bus|\[GPU requires reset\]|Unable to determine the device handle"
)
_COUNTER: Final = re.compile(
    r"^(?:(?:SRAM|DRAM) Uncorrectable(?: Parity| SEC-DED)?|Double Bit|Uncorrectable|Device Memory Uncorrectable)$"
)
_YES: Final = {
    "Remapping Failure Occurred": "row remapping failure: yes",
    "Pending Page Blacklist": "retired pages pending: yes",
    "Channel Repair Pending": "channel repair pending: the GPU requires a reset",
    "TPC Repair Pending": "TPC repair pending: the GPU requires a reset",
    "Unrepairable Memory": "unrepairable memory: yes",
}
_ACTIVE: Final = {
    "HW Slowdown": "HW slowdown active",
    "HW Thermal Slowdown": "HW thermal slowdown active",
    "HW Power Brake Slowdown": "HW power brake slowdown active",
}
_ERRORS: Final = ("Unknown Error", "ERR!", "Unknown Error]")


def read_gpu_states(text: str) -> list[str]:
    """Return the faults of each GPU as texts of node events, such as "GPU 3 (PCI 9a:00.0): row remap pending: yes".

    Raises:
        NotDiagnostic: the text is not an output of `nvidia-smi -q`.
    """
    found: list[str] = []
    known = False
    lines = text.split("\n")[:_MOST_LINES]
    indexes = _indexes(lines)
    bus, index, section, counters, waiting = "", None, "", 0, list[str]()
    for line in [*lines, "GPU 0000:00:00.0"]:
        if (lost := _LOST.search(line)) is not None:
            known = True
            found.append(
                f"nvidia-smi: {line.strip()[:200]}" if "Unable" in line else f"GPU {bus or '?'}: {lost[0].strip('[]')}"
            )
            continue
        gpu = _GPU.match(line.rstrip())
        if gpu is not None:
            found += _events(bus, index, counters, waiting)
            known = known or bool(bus)
            bus, index, section, counters, waiting = gpu["bus"].lower(), next(indexes, None), "", 0, []
            continue
        field = _FIELD.match(line)
        if field is None or not bus:
            continue
        name, value = field["name"].strip(), (field["value"] or "").strip()
        if not field["value"]:
            section = name if len(field["indent"]) <= 8 or name in {"Volatile", "Aggregate"} else section  # noqa: PLR2004
            continue
        if section == "Volatile" and _COUNTER.match(name) and value.isdecimal():
            counters += int(value[:12])
        else:
            waiting += _fault(section, name, value)
    if not known and not found:
        raise NotDiagnostic("not an output of nvidia-smi -q: no GPU is named")
    return list(dict.fromkeys(found))[:_MOST_EVENTS]


def _indexes(lines: Sequence[str]) -> Iterator[int]:
    """The number of each GPU, as `nvidia-smi` and CUDA number them: their order, where all are listed.

    The minor number of the device file is another one: on DGX A100, GPU 0 is /dev/nvidia2.
    """
    attached = next((one["count"] for line in lines[:_HEAD_LINES] if (one := _ATTACHED.match(line))), None)
    listed = sum(_GPU.match(line.rstrip()) is not None for line in lines)
    return iter(range(listed if attached == str(listed) else 0))


def _fault(section: str, name: str, value: str) -> Iterator[str]:
    if (name in _YES and value.startswith("Yes")) or (
        name in {"Channel Repair Pending", "TPC Repair Pending"} and "reset" in value
    ):
        yield _YES[name]
    elif section == "Remapped Rows" and name == "Pending" and value == "Yes":
        yield "row remap pending: yes"
    elif name in _ACTIVE and value == "Active":
        yield _ACTIVE[name]
    elif name == "GPU Recovery Action" and value not in {"None", "N/A"}:
        yield f"recovery action: {value[:40]}"
    elif any(word in value for word in _ERRORS) and name in {"Used GPU Memory", "GPU Current Temp", "Fan Speed"}:
        yield f"{name}: {value[:40]}"


def _events(bus: str, index: int | None, counters: int, faults: list[str]) -> list[str]:
    if not bus:
        return []
    name = f"GPU {index} (PCI {bus})" if index is not None else f"GPU at PCI {bus}"
    ecc = [f"{counters} uncorrectable ECC errors since the driver was loaded"] if counters else []
    return [f"{name}: {fault}" for fault in [*ecc, *dict.fromkeys(faults)]]
