import os

import peer
from job import Job

os.environ["HF_ENDPOINT"] = os.environ.get("STORE") or f"http://{peer.start('slam')}"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"


def fault(job):
    from huggingface_hub import HfApi, hf_hub_download, snapshot_download

    match job.how:
        case "file":
            return hf_hub_download("acme/tiny-encoder", "config.json")
        case "snapshot":
            return snapshot_download("acme/tiny-encoder", revision="v2", max_workers=1)
        case "data":
            return hf_hub_download(f"acme/{job.name}", "train.jsonl", repo_type="dataset")
        case "info":
            return HfApi().model_info("acme/tiny-encoder")
        case "push":
            return HfApi(token="hf_" + "a" * 30).create_repo("acme/tiny-encoder-ft")
        case "offline":
            os.environ["HF_HUB_OFFLINE"] = "1"
            import huggingface_hub.constants as constants

            constants.HF_HUB_OFFLINE = True
            return hf_hub_download("acme/tiny-encoder", "model.safetensors")
        case "name":
            return hf_hub_download("/models/tiny encoder/v2", "config.json")
    return None


Job().run(fault)
