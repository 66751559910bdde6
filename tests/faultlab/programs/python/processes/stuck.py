import queue
import socket
import threading
import time

from job import Job


def fault(job):
    match job.how:
        case "lock":
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        case "queue":
            queue.Queue().get()
        case "timely":
            queue.Queue().get(timeout=0.3)
        case "join":
            event = threading.Event()
            worker = threading.Thread(target=event.wait)
            worker.start()
            worker.join()
        case "accept":
            server = socket.create_server(("127.0.0.1", 0))
            job.say(f"waiting for {job.world + 1} workers")
            server.accept()
        case "sleep":
            time.sleep(3600)
        case "spin":
            while True:
                pass


Job().run(fault)
