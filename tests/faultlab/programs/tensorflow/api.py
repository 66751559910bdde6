import keras
import numpy as np
import tensorflow as tf
from fit import Fit

job = Fit(epochs=1)
x, y = job.data()
match job.how:
    case "uncompiled":
        keras.Sequential([keras.Input((12,)), keras.layers.Dense(4)]).fit(x, y)
    case "lr":
        keras.optimizers.Adam(lr=1e-3)
    case "decay":
        keras.optimizers.SGD(learning_rate=0.1, decay=1e-4)
    case "optimizer":
        keras.Sequential([keras.Input((12,)), keras.layers.Dense(4)]).compile("adamax2", "mse")
    case "loss":
        model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(4)])
        model.compile("adam", "crossentropy")
        model.fit(x, y)
    case "generator":
        job.build().fit_generator(iter([(x, y)]))
    case "classes":
        job.build().predict_classes(x)
    case "layer":
        keras.layers.CuDNNLSTM(4)
    case "preprocessing":
        tf.keras.preprocessing.text.Tokenizer(100)
    case "estimator":
        tf.estimator.RunConfig(model_dir="m")
    case "activation":
        keras.layers.Dense(3, activation="reluu")
    case "workers":
        job.build().fit(x, y, workers=4, use_multiprocessing=True)
    case "callback":
        job.train(callbacks=[keras.callbacks.ModelCheckpoint("best_{epoch}.h6")])
    case "monitor":
        job.train(callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch: "0.1")])
    case "functional":
        a = keras.Input((4,))
        keras.Model(a, tf.nn.relu(a))
    case "frozen":
        model = job.build()
        model.trainable_variables[0].assign("x")
    case "rank":
        keras.metrics.MeanIoU(num_classes=3).update_state(np.array([0, 7]), np.array([0, 1]))
    case "gradient":
        with tf.GradientTape() as tape:
            loss = tf.constant(3.0)
        keras.optimizers.SGD().apply_gradients(zip(tape.gradient(loss, job.build().trainable_variables), job.build().trainable_variables))
    case "none":
        model = job.build()
        model.optimizer = None
        model.train_on_batch(x, y)
    case "mixed":
        keras.mixed_precision.set_global_policy("float12")
