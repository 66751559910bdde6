import importlib.metadata

from job import Job


def parse(text):
    return tuple(int(word) for word in text.split(".")[:2])


def fault(job):
    if job.how == "metadata":
        return importlib.metadata.version("torch")
    if job.how == "entry":
        (point,) = importlib.metadata.entry_points(group="console_scripts", name="deepspeed")
        return point.load()
    if job.how == "assert":
        found = importlib.metadata.version("numpy")
        assert parse(found) < (2, 0), ("numpy", found)
    if job.how == "requires":
        import pkg_resources

        pkg_resources.require(["numpy<1.20", "tensorboardX>=2"])
    return None


Job().run(fault)
