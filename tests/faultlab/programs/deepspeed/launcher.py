from zero import args, engine, train

train(engine())
