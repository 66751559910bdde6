from tune import Tokens, Trainer, args, model, options

Trainer(model=model(), args=options(), train_dataset=Tokens()).train(resume_from_checkpoint=True if args.how == "" else "out/checkpoint-500")
