import argparse
import os

os.environ.update(RAY_gcs_rpc_server_reconnect_timeout_s="3", RAY_USAGE_STATS_ENABLED="0", RAY_NUM_REDIS_GET_RETRIES="2", RAY_gcs_server_request_timeout_seconds="3")

import ray

parser = argparse.ArgumentParser()
parser.add_argument("--how", default="")
how = parser.parse_args().how
print("connecting", flush=True)
match how:
    case "auto":
        ray.init(address="auto")
    case "port":
        ray.init(address="127.0.0.1:" + os.environ["HEAD_PORT"])
    case "client":
        ray.init(address="ray://127.0.0.1:" + os.environ["HEAD_PORT"])
    case "name":
        ray.init(address="ray-head.training.svc:6379")
    case "words":
        ray.init(address="auto", num_cpus=4)
    case "store":
        ray.init(object_store_memory=1 << 10, include_dashboard=False)
    case "get":
        ray.get(ray.ObjectRef(b"1" * 28))
    case "folder":
        ray.init(_temp_dir="/proc/ray", include_dashboard=False, num_cpus=1)
