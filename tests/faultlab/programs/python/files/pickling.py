import multiprocessing
import pickle
import threading

from job import Job


class Loader:
    def __init__(self):
        self.lock = threading.Lock()
        self.transform = lambda x: x * 2


def fault(job):
    if job.how == "lambda":
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.map(lambda x: x + 1, [1, 2])
    if job.how == "lock":
        return pickle.dumps(Loader())
    if job.how == "generator":
        return pickle.dumps(n for n in range(3))
    if job.how == "local":
        class Batch:
            pass

        return pickle.dumps(Batch())
    if job.how == "module":
        return pickle.dumps(pickle)
    if job.how == "file":
        return pickle.dumps(open(__file__))
    return None


if __name__ == "__main__":
    Job().run(fault)
