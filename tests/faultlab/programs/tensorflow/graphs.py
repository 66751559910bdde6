import keras
import numpy as np
import tensorflow as tf
from fit import Fit

job = Fit(epochs=1)
model = job.train()
x, y = job.data()
match job.how:
    case "python":
        @tf.function
        def step(v):
            if not tf.reduce_sum(v) > 0 and v.numpy().any():
                return v
            return -v

        step(tf.ones(3))
    case "variable":
        @tf.function
        def count(v):
            total = tf.Variable(0.0)
            return total.assign_add(tf.reduce_sum(v))

        count(tf.ones(3))
    case "leak":
        kept = []

        @tf.function
        def keep(v):
            kept.append(v * 2)
            return v

        keep(tf.ones(3))
        print(kept[0] + 1.0)
    case "session":
        with tf.Graph().as_default():
            value = tf.compat.v1.get_variable("w", (3,))
            with tf.compat.v1.Session() as session:
                session.run(value)
    case "feed":
        with tf.Graph().as_default():
            place = tf.compat.v1.placeholder(tf.float32, (3,), name="images")
            with tf.compat.v1.Session() as session:
                session.run(place * 2)
    case "old":
        tf.Session()
    case "contrib":
        tf.contrib.layers.flatten(x)
    case "gather":
        tf.gather(tf.range(5), [2, 9])
    case "nan":
        tf.debugging.check_numerics(tf.math.log(tf.constant([-1.0, 2.0])), "loss")
    case "terminate":
        model.compile(keras.optimizers.SGD(1e30), "mse")
        model.fit(x, y.astype("float32") * 1e20, epochs=3, callbacks=[keras.callbacks.TerminateOnNaN()], verbose=2)
        assert np.isfinite(model.get_weights()[0]).all()
    case "dtype":
        tf.constant(1.0) + tf.constant(2)
    case "cast":
        tf.constant("3.4x") and tf.strings.to_number("3.4x")
    case "assert":
        tf.debugging.assert_equal(tf.shape(x)[0], 7)
    case "device":
        with tf.device("/GPU:0"):
            tf.config.set_soft_device_placement(False)
            tf.matmul(tf.ones((3, 3)), tf.ones((3, 3)))
