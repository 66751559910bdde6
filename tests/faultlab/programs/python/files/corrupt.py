import bz2
import gzip
import json
import lzma
import pickle
import sqlite3
import struct
import sys
import tarfile
import zipfile
import zlib

import numpy as np
from job import Job

ROWS = [{"id": n, "text": f"sample {n} " * 6} for n in range(400)]


def save(how):
    if how == "gzip":
        with gzip.open("shard.bin", "wt") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in ROWS)
    elif how == "bz2":
        with bz2.open("shard.bin", "wt") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in ROWS)
    elif how == "lzma":
        with lzma.open("shard.bin", "wt") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in ROWS)
    elif how == "zip":
        with zipfile.ZipFile("shard.bin", "w", zipfile.ZIP_DEFLATED) as archive:
            for row in ROWS:
                archive.writestr(f"{row['id']}.txt", row["text"])
    elif how == "tar":
        with open("shard.json", "w") as stream:
            json.dump(ROWS, stream)
        with tarfile.open("shard.bin", "w:gz") as archive:
            archive.add("shard.json")
    elif how == "npz":
        with open("shard.bin", "wb") as stream:
            np.savez_compressed(stream, x=np.arange(50_000) % 997, y=np.ones(3))
    elif how == "npy":
        with open("shard.bin", "wb") as stream:
            np.save(stream, np.arange(9_000).reshape(90, 100))
    elif how == "pickle":
        with open("shard.bin", "wb") as stream:
            pickle.dump(ROWS, stream)
    elif how == "sqlite":
        base = sqlite3.connect("shard.bin")
        base.execute("create table rows (id, text)")
        base.executemany("insert into rows values (:id, :text)", ROWS)
        base.commit()
    elif how == "struct":
        with open("shard.bin", "wb") as stream:
            for row in ROWS:
                stream.write(struct.pack("<IQd", row["id"], 4, 0.5))
    elif how == "zlib":
        with open("shard.bin", "wb") as stream:
            stream.write(zlib.compress(json.dumps(ROWS).encode()))
    elif how == "jsonl":
        with open("shard.bin", "w") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in ROWS)


def load(how):
    if how in {"gzip", "bz2", "lzma"}:
        with {"gzip": gzip, "bz2": bz2, "lzma": lzma}[how].open("shard.bin", "rt") as stream:
            return [json.loads(line) for line in stream]
    if how == "zip":
        with zipfile.ZipFile("shard.bin") as archive:
            return [archive.read(name) for name in archive.namelist()]
    if how == "tar":
        with tarfile.open("shard.bin") as archive:
            archive.extractall("out", filter="data")
    if how == "npz":
        with np.load("shard.bin") as archive:
            return archive["x"].sum()
    if how == "npy":
        return np.load("shard.bin")
    if how == "pickle":
        with open("shard.bin", "rb") as stream:
            return pickle.load(stream)
    if how == "sqlite":
        return sqlite3.connect("shard.bin").execute("select sum(length(text)) from rows").fetchall()
    if how == "struct":
        with open("shard.bin", "rb") as stream:
            while block := stream.read(20):
                struct.unpack("<IQd", block)
    if how == "zlib":
        with open("shard.bin", "rb") as stream:
            return zlib.decompress(stream.read())
    if how == "jsonl":
        with open("shard.bin") as stream:
            return [json.loads(line) for line in stream]
    return None


if sys.argv[1] == "save":
    save(sys.argv[2])
else:
    Job().run(lambda job: load(job.how))
