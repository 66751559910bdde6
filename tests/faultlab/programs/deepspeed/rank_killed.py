from zero import engine, train

train(engine())
