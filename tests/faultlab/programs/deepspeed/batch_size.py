from zero import args, engine, train

words = {"micro": {"train_batch_size": 30, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4}, "none": {"train_batch_size": None}}[args.how]
train(engine(**words))
