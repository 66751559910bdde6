import os

config = {"lr": 0.1, "epochs": 3
for epoch in range(3):
    pass
