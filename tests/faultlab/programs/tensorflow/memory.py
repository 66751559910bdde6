import keras
import numpy as np
import tensorflow as tf
from fit import Fit

job = Fit(epochs=1)
model = job.train()
match job.how:
    case "tensor":
        tf.ones((400_000, 90_000))
    case "matmul":
        v = tf.ones((300_000, 4))
        tf.matmul(v, v, transpose_b=True)
    case "numpy":
        np.ones((600_000, 9_000)).sum()
    case "layer":
        keras.Sequential([keras.Input((900_000,)), keras.layers.Dense(90_000)])
    case "kept":
        kept = []
        while True:
            kept.append(tf.random.normal((30_000_000,)))
