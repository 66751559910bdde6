import os

import keras
import numpy as np
import tensorflow as tf
from fit import Fit


class Scale(keras.layers.Layer):
    def build(self, shape):
        self.gain = self.add_weight(shape=shape[1:], name="gain")

    def call(self, x):
        return x * self.gain


job = Fit(epochs=1)
model = job.train()
match job.how:
    case "missing":
        keras.models.load_model("runs/best.keras")
    case "folder":
        os.makedirs("saved")
        keras.models.load_model("saved")
    case "extension":
        model.save("final_model")
    case "custom":
        net = keras.Sequential([keras.Input((12,)), Scale(), keras.layers.Dense(4)])
        net.save("net.keras")
        keras.models.load_model("net.keras")
    case "cut":
        model.save("net.keras")
        os.truncate("net.keras", 2000)
        keras.models.load_model("net.keras")
    case "garbled":
        model.save("net.h5")
        os.truncate("net.h5", 3000)
        keras.models.load_model("net.h5")
    case "weights":
        model.save_weights("a.weights.h5")
        keras.Sequential([keras.Input((12,)), keras.layers.Dense(99), keras.layers.Dense(4)]).load_weights("a.weights.h5")
    case "layers":
        model.save_weights("a.weights.h5")
        keras.Sequential([keras.Input((12,)), *(keras.layers.Dense(9) for _ in range(5))]).load_weights("a.weights.h5")
    case "suffix":
        model.save_weights("a.ckpt")
    case "checkpoint":
        tf.train.Checkpoint(model=model).restore("ckpts/ckpt-7").assert_consumed()
    case "mismatch":
        path = tf.train.Checkpoint(w=tf.Variable(tf.ones(3))).save("ckpts/ckpt")
        tf.train.Checkpoint(w=tf.Variable(tf.ones(5))).restore(path)
    case "consumed":
        path = tf.train.Checkpoint(w=tf.Variable(tf.ones(3)), v=tf.Variable(1.0)).save("ckpts/ckpt")
        tf.train.Checkpoint(w=tf.Variable(tf.ones(3)), u=tf.Variable(1.0)).restore(path).assert_consumed()
    case "data":
        path = tf.train.Checkpoint(w=tf.Variable(tf.random.normal((90, 90)))).save("ckpts/ckpt")
        os.truncate(path + ".data-00000-of-00001", 900)
        tf.train.Checkpoint(w=tf.Variable(tf.ones((90, 90)))).restore(path)
    case "full" | "denied":
        keras.Sequential([keras.Input((900,)), keras.layers.Dense(900)]).save("out/net.keras")
    case "tfdata":
        tf.train.Checkpoint(w=tf.Variable(tf.random.normal((900, 90)))).write("out/ckpt")
    case "unbuilt":
        keras.Sequential([keras.layers.Dense(3)]).save_weights("a.weights.h5")
        keras.Sequential([keras.layers.Dense(3)]).summary() or keras.Sequential([keras.layers.Dense(3)]).count_params()
