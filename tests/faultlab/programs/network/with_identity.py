import boto3
from job import Job


def fault(job):
    match job.how:
        case "none":
            return boto3.client("s3", region_name="eu-west-1").get_object(Bucket="ml-datasets", Key="x")
        case "profile":
            return boto3.Session(profile_name="training-prod").client("s3")
        case "region":
            return boto3.client("ecr").describe_repositories()
        case "partial":
            return boto3.client("s3", aws_access_key_id="AKIA", region_name="eu-west-1").list_buckets()
        case "file":
            import os

            os.environ.update(AWS_WEB_IDENTITY_TOKEN_FILE="/var/run/secrets/token", AWS_ROLE_ARN="arn:aws:iam::111122223333:role/train")
            return boto3.client("s3", region_name="eu-west-1").list_buckets()
        case "bucket":
            return boto3.client("s3", region_name="eu-west-1").list_objects_v2(Bucket="s3://ml-datasets/train")
        case "parameter":
            return boto3.client("s3", region_name="eu-west-1").put_object(Bucket="b", Key=None, Body=3)
    return None


Job().run(fault)
