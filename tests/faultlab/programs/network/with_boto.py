import os

import boto3
import peer
from botocore.config import Config
from job import Job


def fault(job):
    how, _, name = job.how.partition(":")
    s3 = boto3.client(
        "s3",
        endpoint_url=os.environ.get("STORE") or f"http://{peer.start(name)}",
        region_name="eu-west-1",
        config=Config(retries={"max_attempts": int(os.environ.get("TRIES", "1")), "mode": "standard"}, connect_timeout=1, read_timeout=1),
    )
    match how:
        case "get":
            return s3.get_object(Bucket="ml-datasets", Key=f"{job.name}/train-00000.parquet")["Body"].read()
        case "head":
            return s3.head_object(Bucket="ml-datasets", Key=f"{job.name}/_SUCCESS")
        case "list":
            return s3.list_objects_v2(Bucket="ml-datasets", Prefix=job.name)["Contents"]
        case "put":
            return s3.put_object(Bucket="ml-checkpoints", Key=f"{job.name}/step-{job.at}.pt", Body=b"x" * 4000)
        case "file":
            return s3.download_file("ml-models", f"{job.name}/model.safetensors", "model.safetensors")
        case "upload":
            with open("last.ckpt", "wb") as stream:
                stream.write(bytes(20_000))
            return s3.upload_file("last.ckpt", "ml-checkpoints", "last.ckpt")
        case "multi":
            return s3.create_multipart_upload(Bucket="ml-checkpoints", Key="huge.pt")
        case "delete":
            return s3.delete_object(Bucket="ml-checkpoints", Key="old.pt")
    return None


Job().run(fault)
