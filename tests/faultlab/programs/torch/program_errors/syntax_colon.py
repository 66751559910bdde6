import sys


class Trainer
    def fit(self):
        return 1
