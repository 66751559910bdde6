import csv
import json
import sys

from job import Job


def fault(job):
    how, _, name = job.how.partition(":")
    if how == "text":
        with open(name, encoding="utf-8") as stream:
            return stream.read().split()
    if how == "ascii":
        with open(name, encoding="ascii") as stream:
            return [line.split("\t") for line in stream]
    if how == "csv":
        with open(name, newline="", encoding="utf-8") as stream:
            return list(csv.DictReader(stream))
    if how == "json":
        with open(name, encoding="utf-8") as stream:
            return json.load(stream)
    if how == "stdout":
        sys.stdout.reconfigure(encoding="ascii")
        print("caf\u00e9 \u2013 na\u00efve")
    if how == "encode":
        return "\u65e5\u672c\u8a9e".encode("latin-1")
    if how == "surrogate":
        return open(name, errors="surrogateescape").read().encode("utf-8")
    if how == "utf16":
        with open(name, encoding="utf-16") as stream:
            return stream.read()
    if how == "codec":
        return open(name, encoding="utf8-mb4").read()
    return None


Job().run(fault)
