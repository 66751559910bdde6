from fit import L, Net, args, data, torch, trainer

choice = {"precision": {"precision": "fp16-bad"}, "strategy": {"strategy": "dp2"}, "gpus": {"gpus": 2}, "checks": {"val_check_interval": 5000}, "batches": {"limit_train_batches": 1.5}}[args.how]
trainer(**choice).fit(Net(), data(), data(16) if args.how == "checks" else None)
