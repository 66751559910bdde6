"""Workers report to a coordinator over plain sockets before they train."""

import os
import socket
import time

from job import Job

job = Job(every=5)
host, port = os.environ.get("COORDINATOR", "127.0.0.1"), int(os.environ.get("COORDINATOR_PORT") or os.environ["MASTER_PORT"])
if job.rank == 0 and job.how != "nohead":
    server = socket.create_server((os.environ.get("LISTEN", "127.0.0.1"), port))
    server.settimeout(float(os.environ.get("WAIT", "3")))
    links = []
    while len(links) < job.world - 1:
        link, address = server.accept()
        links.append(link)
        job.say(f"{len(links)}/{job.world - 1} workers are here")
else:
    deadline = time.monotonic() + float(os.environ.get("WAIT", "3"))
    while True:
        try:
            link = socket.create_connection((host, port), timeout=1)
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.3)
job.run(lambda _: None)
