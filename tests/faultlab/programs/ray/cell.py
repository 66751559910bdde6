"""A local Ray with two cores: options and the start; what fails is the program's own."""

import argparse
import logging
import os
import time

os.environ.setdefault("RAY_DEDUP_LOGS", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import numpy as np
import ray


class Cell:
    """Options; `start` brings Ray up."""

    def __init__(self, **words):
        parser = argparse.ArgumentParser()
        parser.add_argument("--how", default="")
        parser.add_argument("--workers", type=int, default=2)
        parser.add_argument("--retries", type=int, default=0)
        self.args = parser.parse_args()
        self.how = self.args.how
        self.seed = int(os.environ.get("LAB_SEED", 1))
        words = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 90 << 20, "log_to_driver": True, "_temp_dir": None} | words
        ray.init(**{k: v for k, v in words.items() if v is not None})
        print(f"Ray {ray.__version__} with {ray.cluster_resources().get('CPU', 0):.0f} cores", flush=True)
