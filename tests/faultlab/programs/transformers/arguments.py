from tune import Tokens, Trainer, args, model, options

choice = {
    "strategy": {"evaluation_strategy": "steps"},
    "best": {"load_best_model_at_end": True, "eval_strategy": "epoch"},
    "eval": {"eval_strategy": "steps", "eval_steps": 2},
    "fp16": {"optim": "adamw_bnb_8bit"},
    "sched": {"lr_scheduler_type": "cosine_warm"},
}[args.how]
Trainer(model=model(), args=options(**choice), train_dataset=Tokens()).train()
