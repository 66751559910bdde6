import os

from job import Job

os.environ.update(MLFLOW_HTTP_REQUEST_MAX_RETRIES="1", MLFLOW_HTTP_REQUEST_TIMEOUT="1", MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR="1")


def fault(job):
    import mlflow
    import peer

    mlflow.set_tracking_uri(os.environ.get("STORE") or f"http://{peer.start(job.how.partition(':')[2] or 'closed')}")
    client = mlflow.MlflowClient()
    how = job.how.partition(":")[0]
    if how == "experiment":
        return client.create_experiment(job.name)
    if how == "metric":
        return client.log_metric("0" * 32, "loss", 0.3, step=job.at)
    return mlflow.set_experiment(job.name)


Job().run(fault)
