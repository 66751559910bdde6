from tune import Tokens, Trainer, args, model, options

Trainer(model=model(vocab=12000), args=options(save_strategy="steps", save_steps=2), train_dataset=Tokens()).train()
