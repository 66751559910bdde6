from tune import Tokens, Trainer, model, options

Trainer(model=model(vocab=60), args=options(), train_dataset=Tokens(top=90)).train()
