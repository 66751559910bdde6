import ast
import configparser
import importlib
import json
import os
import sys
import tomllib

import yaml
from job import Job


def fault(job):
    sys.path.insert(0, os.getcwd())
    kind, _, name = job.how.partition(":")
    if kind == "import":
        return importlib.import_module(name)
    with open(name) as stream:
        text = stream.read()
    if kind == "yaml":
        return yaml.safe_load(text)
    if kind == "json":
        return json.loads(text)
    if kind == "toml":
        return tomllib.loads(text)
    if kind == "ini":
        parser = configparser.ConfigParser()
        parser.read_string(text)
        return parser.getint("train", "epochs")
    if kind == "literal":
        return ast.literal_eval(text)
    if kind == "lines":
        return [json.loads(line) for line in text.splitlines()]
    return eval(compile(text, name, "eval"))


Job().run(fault)
