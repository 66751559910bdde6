"""A small Keras training: options, model, data, callbacks; what fails is the program's own."""

import argparse
import json
import os
import sys

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import keras
import tensorflow as tf


class Fit:
    """Options and the usual pieces."""

    def __init__(self, **defaults):
        parser = argparse.ArgumentParser()
        parser.add_argument("--how", default="")
        parser.add_argument("--verbose", type=int, default=2)
        parser.add_argument("--epochs", type=int, default=2)
        parser.add_argument("--model", default="dense", choices=["dense", "conv", "text"])
        parser.set_defaults(**defaults)
        self.args = parser.parse_args()
        self.how = self.args.how
        self.rng = np.random.default_rng(int(os.environ.get("LAB_SEED", 1)))
        keras.utils.set_random_seed(3)

    def say(self, text):
        """A line of the job."""
        print(json.dumps({"msg": text}) if self.args.verbose == 0 else text, flush=True)

    def data(self, count=48):
        """Made-up samples of the model's kind."""
        shape = {"dense": (12,), "conv": (10, 10, 3), "text": (9,)}[self.args.model]
        x = self.rng.integers(0, 50, size=(count, *shape)) if self.args.model == "text" else self.rng.normal(size=(count, *shape)).astype("float32")
        return x, self.rng.integers(0, 4, size=count)

    def build(self):
        """The model, compiled."""
        layers = keras.layers
        if self.args.model == "conv":
            body = [keras.Input((10, 10, 3)), layers.Conv2D(4, 3, activation="relu"), layers.GlobalAveragePooling2D()]
        elif self.args.model == "text":
            body = [keras.Input((9,), dtype="int32"), layers.Embedding(50, 8), layers.GlobalAveragePooling1D()]
        else:
            body = [keras.Input((12,)), layers.Dense(16, activation="relu")]
        model = keras.Sequential([*body, layers.Dense(4)], name=f"{self.args.model}_net")
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        return model

    def train(self, model=None, data=None, **words):
        """Fit; gives the model."""
        model = model or self.build()
        self.say(f"TensorFlow {tf.__version__}, Keras {keras.__version__}, {model.count_params()} parameters")
        model.fit(*(data or self.data()), epochs=self.args.epochs, batch_size=8, verbose=self.args.verbose, **words)
        return model
