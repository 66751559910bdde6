import multiprocessing
import os
import socket
import sqlite3
import subprocess
import tempfile
import threading

import numpy as np
from job import Job


def fault(job):
    kept = []
    match job.how:
        case "shards":
            np.save("shard.npy", job.weights)
            while True:
                kept.append(np.load("shard.npy", mmap_mode="r"))
                kept.append(open("shard.npy", "rb"))
        case "sockets":
            while True:
                kept.append(socket.socketpair())
        case "pipes":
            while True:
                kept.append(subprocess.Popen(["sleep", "3"], stdout=subprocess.PIPE, stdin=subprocess.PIPE))
        case "queues":
            while True:
                kept.append(multiprocessing.Queue())
        case "temp":
            while True:
                kept.append(tempfile.TemporaryFile())
        case "sqlite":
            while True:
                base = sqlite3.connect("meta.db")
                base.execute("select 1 from sqlite_master").fetchall()
                kept.append(base)
        case "threads":
            stop = threading.Event()
            try:
                while True:
                    worker = threading.Thread(target=stop.wait, daemon=True)
                    worker.start()
            finally:
                stop.set()
        case "dup":
            while True:
                kept.append(os.dup(1))


Job().run(fault)
