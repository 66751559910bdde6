import keras
import tensorflow as tf
from fit import Fit

job = Fit()
model = job.train()
x, y = job.data()
match job.how:
    case "input":
        model.fit(x[:, :5], y, verbose=job.args.verbose)
    case "labels":
        model.fit(x, y[:-5], verbose=job.args.verbose)
    case "logits":
        model.compile("sgd", keras.losses.CategoricalCrossentropy())
        model.fit(x, y, verbose=job.args.verbose)
    case "range":
        model.fit(x, y + 3, verbose=job.args.verbose)
    case "matmul":
        tf.matmul(tf.ones((3, 4)), tf.ones((5, 6)))
    case "concat":
        tf.concat([tf.ones((3, 4)), tf.ones((5, 6))], axis=1)
    case "reshape":
        tf.reshape(tf.ones((3, 4)), (5, -1))
    case "graph":
        @tf.function
        def step(a, b):
            return tf.linalg.matmul(a, b) + 1

        step(tf.ones((3, 4)), tf.ones((3, 4)))
    case "dense":
        keras.Sequential([keras.layers.Dense(3), keras.layers.Conv2D(3, 3)])(tf.ones((2, 8)))
    case "weights":
        model.set_weights([w[:2] for w in model.get_weights()])
    case "signature":
        @tf.function(input_signature=[tf.TensorSpec((None, 4), tf.float32)])
        def serve(a):
            return a * 2

        serve(tf.ones((3, 5)))
