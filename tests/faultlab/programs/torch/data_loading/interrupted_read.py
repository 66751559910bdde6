import os
import socket
import struct

from engine import Job, torch

job = Job().prepare()
job.train()
host, port = os.environ["STORE"].split(":")
feed = socket.create_connection((host, int(port)), timeout=2 if job.how == "slow" else 10)
feed.sendall(b"GET /shard-0001 HTTP/1.1\r\nHost: store\r\n\r\n")
size = struct.unpack("!Q", feed.recv(8))[0]
