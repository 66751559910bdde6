from world import World

World(pause=0.02, steps=2000, at=2000).run(lambda world: None)
