"""Setup steps of a started process before its program begins. Standard library only: the fork server of another
environment loads this file too.

A step is a list that begins with its name: ["hostname", name], ["rlimit", resource, bytes or count], ["shm", MiB],
["offline"], ["user"], ["netns", name], ["group", folder of a control group]; ["only", rank, step] applies the step
only in the process with that RANK.
"""

import ctypes
import os
import resource
import subprocess
from typing import Any

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWNET = 0x00020000, 0x04000000, 0x40000000
_MS_REC_PRIVATE = 0x4000 | (1 << 18)
_PR_CAPBSET_DROP = 24
# CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER: these let root bypass permission bits.
_OVER_PERMISSIONS = (1, 2, 3)


def _check(code: int, what: str) -> None:
    if code != 0:
        raise OSError(ctypes.get_errno(), what)


def _hostname(name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWUTS), "unshare")
    _check(libc.sethostname(name.encode(), len(name.encode())), "sethostname")


def _small_shm(mb: float) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWNS), "unshare")
    _check(libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None), "mount private")
    _check(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, f"size={int(mb * 1024)}k".encode()), "mount /dev/shm")


def _offline() -> None:
    _check(ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def _join_netns(name: str) -> None:
    with open(f"/var/run/netns/{name}", encoding="ascii") as namespace:
        _check(ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET), "setns")


def _drop_powers() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _OVER_PERMISSIONS:
        _check(libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), "prctl PR_CAPBSET_DROP")
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)()
    _check(libc.capget(header, data), "capget")
    for word in (0, 1, 2):
        data[word] &= ~sum(1 << capability for capability in _OVER_PERMISSIONS)
    _check(libc.capset(header, data), "capset")


def enter(steps: list[list[Any]]) -> None:
    """Run the steps in the calling process."""
    for name, *args in steps:
        if name == "hostname":
            _hostname(args[0])
        elif name == "rlimit":
            which = getattr(resource, f"RLIMIT_{args[0].upper()}")
            resource.setrlimit(which, (args[1], args[1]))
        elif name == "shm":
            _small_shm(args[0])
        elif name == "netns":
            _join_netns(args[0])
        elif name == "offline":
            _offline()
        elif name == "only":
            if os.environ.get("RANK") == str(args[0]):
                enter([args[1]])
        elif name == "user":
            _drop_powers()
        elif name == "group":
            with open(os.path.join(args[0], "cgroup.procs"), "w", encoding="ascii") as stream:
                stream.write(str(os.getpid()))
        else:
            raise ValueError(f"unknown step {name}")
