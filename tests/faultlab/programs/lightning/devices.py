from fit import L, Net, args, data, torch, trainer

choice = {"gpu": {"accelerator": "gpu", "devices": 1}, "many": {"accelerator": "gpu", "devices": 4, "strategy": "ddp"}, "tpu": {"accelerator": "tpu"}, "cuda": {"accelerator": "cuda", "devices": [0, 1]}}[args.how]
trainer(**choice).fit(Net(), data())
