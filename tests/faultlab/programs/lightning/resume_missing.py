from fit import L, Net, args, data, torch, trainer

trainer().fit(Net(), data(), ckpt_path={"": "checkpoints/last.ckpt", "best": "/mnt/ckpt/exp42/best.ckpt"}[args.how])
