import os
import socket

import peer
from job import Job


def fault(job):
    how, _, name = job.how.partition(":")
    if how == "name":
        return socket.getaddrinfo(name, 2379)
    if how == "connect":
        host, _, port = name.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=float(os.environ.get("WAIT", "1")))
    host, port = peer.start(name).split(":")
    link = socket.create_connection((host, int(port)), timeout=0.5)
    if how == "send":
        for _ in range(2000):
            link.sendall(b"\0" * 65536)
    link.sendall(b"PING\r\n")
    answer = link.recv(16)
    if len(answer) < 4:
        raise EOFError(len(answer))
    return int.from_bytes(link.recv(4), "big", signed=True)


Job().run(fault)
