import os

import peer
import requests
from job import Job


def fault(job):
    how, _, name = job.how.partition(":")
    os.environ["https_proxy"] = os.environ["http_proxy"] = "http://" + peer.start(name)
    os.environ.pop("no_proxy", None)
    if how == "urllib":
        import urllib.request

        return urllib.request.urlopen("https://models.internal.example/tiny.bin", timeout=1)
    if how == "boto":
        import boto3
        from botocore.config import Config

        os.environ.update(AWS_ACCESS_KEY_ID="AKIAEXAMPLE", AWS_SECRET_ACCESS_KEY="x")
        return boto3.client("s3", region_name="eu-west-1", config=Config(retries={"max_attempts": 0}, connect_timeout=1)).list_buckets()
    return requests.get("https://models.internal.example/tiny.bin", timeout=1).content


Job().run(fault)
