from zero import args, engine, train

words = {
    "stage": {"zero_optimization": {"stage": 7}},
    "offload": {"zero_optimization": {"stage": 3, "offload_param": {"device": "gpu"}}},
    "optimizer": {"optimizer": {"type": "AdamZ", "params": {"lr": 0.1}}},
    "both": {"fp16": {"enabled": True}, "bf16": {"enabled": True}},
    "schedule": {"scheduler": {"type": "WarmupCosine", "params": {}}},
}[args.how]
train(engine(**words))
