"""A fork server: imports heavy modules once, then forks one process for each requested program.

Run by the environment's own Python: `python -u fork_server.py SOCKET PROCESS_SETUP_PY MODULE...`. A request is one JSON
object and two descriptors (stdout, stderr) on a Unix socket; the answer is the process id, then its exit code. Each
fork has its own session, environment, working folder, arguments, signals and exit. torchrun also runs in such a fork
and starts its workers here instead of with exec; the rest of torchrun is unchanged.
"""

import array
import atexit
import contextlib
import gc
import importlib.util
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import types
from typing import Any, NoReturn


def send(address: str, request: dict[str, Any], out: int, err: int) -> socket.socket:
    """Request a process; return the socket that will deliver its pid and exit code."""
    asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    asked.connect(address)
    body = json.dumps(request).encode()
    fds = array.array("i", [out, err])
    asked.sendmsg([struct.pack("!I", len(body))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    asked.sendall(body)
    return asked


class Forked:
    """A requested process, with the interface of subprocess.Popen."""

    def __init__(self, address: str, request: dict[str, Any], out: int, err: int) -> None:
        self.args = request["words"]
        self.returncode: int | None = None
        self._asked = send(address, request, out, err)
        self.pid: int = struct.unpack("!i", self._asked.recv(4, socket.MSG_WAITALL))[0]

    def poll(self) -> int | None:
        return self.wait(0) if self.returncode is None else self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        if self.returncode is None:
            ready = select.select([self._asked], [], [], timeout)[0]
            if ready:
                result = self._asked.recv(4, socket.MSG_WAITALL)
                # Without an answer the fork server is gone, and its forks were ended with it.
                self.returncode = struct.unpack("!i", result)[0] if len(result) == 4 else -signal.SIGKILL
                self._asked.close()
            elif timeout:
                raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def _torchrun_forks(address: str, steps: list[list[Any]]) -> None:
    handler = importlib.import_module("torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler")

    def popen(self: Any, args: tuple[Any, ...], env: dict[str, str]) -> Forked:
        out = self._stdout.fileno() if self._stdout else 1
        err = self._stderr.fileno() if self._stderr else 2
        request = {"words": [str(word) for word in args], "env": env, "cwd": os.getcwd(), "steps": steps}
        return Forked(address, request, out, err)

    handler.SubprocessHandler._popen = popen


def become(request: dict[str, Any], out: int, err: int, address: str, inside: Any) -> None:
    """Become the requested program, within the fork. Does not return."""
    os.setsid()
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the same as in a regular interpreter
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    notes = os.environ.get("LAB_NOTES")
    if notes:
        names = [f"session{os.getpid()}"]
        if "RANK" in os.environ:
            names.append("rank" + os.environ["RANK"])
        for name in names:
            with open(os.path.join(notes, name), "w", encoding="ascii") as stream:
                stream.write(str(os.getpid()))
    inside.enter(request["steps"])
    words = request["words"][1:]
    while words[0] == "-u":
        words.pop(0)
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = words
    script = os.path.abspath(words[0])
    if os.path.basename(script) == "torchrun":
        _torchrun_forks(address, request["steps"])
    sys.path[0] = os.path.dirname(script)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=script, __builtins__=__builtins__, __annotations__={})
    sys.modules["__main__"] = main
    with open(script, "rb") as stream:
        source = stream.read()
    try:
        exec(compile(source, script, "exec"), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:  # as a regular interpreter does at top level, without this file's own frame
        trace = error.__traceback__
        error.__traceback__ = trace.tb_next if trace else None
        if isinstance(error, KeyboardInterrupt):
            raise
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None


def leave(code: Any) -> NoReturn:
    """End the fork. With a process group its destructors print, so the interpreter exits normally; else at once."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        gc.unfreeze()
        raise SystemExit(code)
    if code is None or isinstance(code, int):
        number = code or 0
    else:
        print(code, file=sys.stderr)
        number = 1
    threading._shutdown()  # type: ignore[attr-defined] # what the interpreter itself calls: waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(number & 0xFF)


def _receive(asked: socket.socket) -> tuple[dict[str, Any], int, int]:
    head, control, _, _ = asked.recvmsg(4, socket.CMSG_SPACE(8))
    fds = array.array("i")
    fds.frombytes(control[0][2][:8])
    size = struct.unpack("!I", head)[0]
    body = b""
    while len(body) < size:
        body += asked.recv(size - len(body))
    request: dict[str, Any] = json.loads(body)
    return request, fds[0], fds[1]


def serve(address: str) -> tuple[dict[str, Any], int, int]:
    """Serve requests until the socket's folder is removed or the parent ends; returns only in a fork."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(address + ".new")
    listening.listen(64)
    os.rename(address + ".new", address)  # once the path exists, clients may connect
    parent = os.getppid()
    running: dict[int, socket.socket] = {}
    while os.getppid() == parent:
        ready = select.select([listening], [], [], 0.02 if running else 0.5)[0]
        if ready:
            asked, _ = listening.accept()
            try:
                request, out, err = _receive(asked)
            except (OSError, IndexError, struct.error):
                asked.close()
                continue
            pid = os.fork()
            if pid == 0:
                return request, out, err
            os.close(out)
            os.close(err)
            asked.sendall(struct.pack("!i", pid))
            running[pid] = asked
        while running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            code = os.waitstatus_to_exitcode(status)
            if pid in running:
                with running.pop(pid) as result, contextlib.suppress(OSError):
                    result.sendall(struct.pack("!i", code))
    raise SystemExit(0)


def main() -> None:
    address, inside_py, *modules = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("lab_inside", inside_py)
    assert spec is not None and spec.loader is not None
    inside = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(inside)
    sys.modules["lab_zygote"] = sys.modules["__main__"]
    for name in modules:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # forks share the modules' memory pages until they write to them
    request, out, err = serve(address)
    try:
        become(request, out, err, address, inside)
    except SystemExit as ending:
        leave(ending.code)
    leave(0)


if __name__ == "__main__":
    main()
