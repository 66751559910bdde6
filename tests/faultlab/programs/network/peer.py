"""Servers that misbehave below HTTP: they reset, hang, answer half, speak something else."""

import socket
import struct
import threading
import time

HALF = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 400000\r\n\r\n" + b"\0" * 9000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n" + b"x" * 300


def _talk(link, how):
    if how == "hang":
        time.sleep(60)
    if how != "slam":
        link.recv(4096)
    if how == "half":
        link.sendall(HALF)
    elif how == "chunk":
        link.sendall(CHUNKED)
    elif how == "halfreset":
        link.sendall(HALF)
        time.sleep(0.05)
    elif how == "noise":
        link.sendall(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00")
    elif how == "stall":
        link.sendall(HALF[:400])
        time.sleep(60)
    elif how == "proxy407":
        link.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"egress\"\r\nContent-Length: 0\r\n\r\n")
    elif how == "proxy503":
        link.sendall(b"HTTP/1.1 503 Service Unavailable\r\nServer: squid/5.7\r\nContent-Length: 0\r\n\r\n")
    elif how == "proxy403":
        link.sendall(b"HTTP/1.1 403 Forbidden\r\nServer: squid/5.7\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\nContent-Length: 0\r\n\r\n")
    if how in {"reset", "slam", "halfreset"}:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.close()


def start(how, port=0):
    """The address of such a server, host:port."""
    if how == "closed":
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{probe.getsockname()[1]}"
    server = socket.create_server(("127.0.0.1", port))

    def serve():
        while True:
            link, _ = server.accept()
            threading.Thread(target=_talk, args=(link, how), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


if __name__ == "__main__":
    import sys

    start(sys.argv[1], int(sys.argv[2]))
    time.sleep(30)
