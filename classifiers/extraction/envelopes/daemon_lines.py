"""Tells which lines of a log a daemon of the platform or the kernel printed.

Such a line says the same as an event of a node, wherever it stands: people append the kernel's messages or the log of
the scheduler's controller to the log of a job, and some platforms collect both in one stream.
"""

import re
from typing import Final

from classifiers.extraction.envelopes import prefixes

# In a text without any of these there is no such line. In lower case: they are searched with the catalogue's literals.
DAEMON_MARKS: Final = (
    "kernel: ", "nvrm: ", "pcieport ", "slurmctld", "slurmd:", "slurmd[", "_slurm_rpc", "jobid=", "kubelet", "systemd[",
    "containerd[", "dockerd[", "pbs_mom", "pbs_server", "fabricmanager", "rasdaemon", "mcelog", "amdgpu ", "mlx5_core ",
    "sudo[", "sudo: ",
)  # fmt: skip
_HEAD: Final = 160  # characters: longer than the headers of syslog, of dmesg and of Slurm's daemons
_STAMP: Final = re.compile(rf"(?:{prefixes.TIME.pattern}) {{1,2}}")  # the time at which a collector read a line
_DAEMON: Final = re.compile(
    # syslog and journal: time, host, and the name of the program before the message
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\[?\S{0,20}\d\d:\d\d:\d\d\S{0,20} )?(?:[\w.-]{1,64} )?"
    r"(?:kernel|slurmctld|slurmd|systemd|kubelet|containerd|dockerd|pbs_mom|pbs_server|nvidia-fabricmanager"
    r"|nv-fabricmanager|rasdaemon|mcelog|munged|opensm|sudo)(?:\[\d{1,8}\])?: "
    # dmesg: seconds since boot, or the date (`-T`), in brackets
    r"|\[ {0,5}\d{1,8}\.\d{6}\] |\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\] "
    # the files of Slurm's daemons; lines of a job's own step name the step first
    r"|\[20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?\] (?!\[)"
    # messages of the kernel without their header
    r"|NVRM: |(?:pcieport|nvidia|amdgpu|mlx[45]_core|nvme|ixgbe|bnxt_en|ice) (?:[\da-f]{4}:)?[\da-f]{2}:[\da-f]{2}\.\d"
)


def is_of_daemon(line: str) -> bool:
    """Whether a daemon of the platform or the kernel printed a line, by its header or by that behind a collector's."""
    if _DAEMON.match(line, 0, _HEAD) is not None:
        return True
    stamp = _STAMP.match(line)
    return stamp is not None and _DAEMON.match(line, stamp.end(), stamp.end() + _HEAD) is not None
