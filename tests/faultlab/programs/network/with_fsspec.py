import os

import fsspec
import peer
from job import Job


def fault(job):
    how, _, name = job.how.partition(":")
    base = os.environ.get("STORE") or f"http://{peer.start(name)}"
    if how == "protocol":
        return fsspec.open(f"s33://bucket/{job.name}").open()
    if how == "driver":
        return fsspec.filesystem("gcs").ls("bucket")
    if how == "local":
        return fsspec.open(f"file:///mnt/lake/{job.name}/part-0.parquet", "rb").open()
    if how == "cat":
        return fsspec.filesystem("http").cat(f"{base}/{job.name}.bin")
    if how == "copy":
        return fsspec.filesystem("http").get(f"{base}/{job.name}.bin", "copy.bin")
    with fsspec.open(f"{base}/{job.name}.csv", "rt") as stream:
        return stream.read()


Job().run(fault)
