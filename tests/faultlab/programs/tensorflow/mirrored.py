import tensorflow as tf
from fit import Fit, keras

job = Fit(epochs=1)
devices = tf.config.list_physical_devices("CPU")
if job.how != "late":
    tf.config.set_logical_device_configuration(devices[0], [tf.config.LogicalDeviceConfiguration()] * 2)
match job.how:
    case "late":
        tf.ones(3)
        tf.config.set_logical_device_configuration(devices[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    case "device":
        tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    case "none":
        tf.distribute.MirroredStrategy([])
    case _:
        pass
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
job.say(f"replicas: {strategy.num_replicas_in_sync}")
x, y = job.data()
if job.how == "scope":
    model = job.build()
    with strategy.scope():
        model.compile(keras.optimizers.Adam(), "mse")
    model.fit(x, y, batch_size=8, verbose=2)
with strategy.scope():
    model = job.build()
match job.how:
    case "reduction":
        with strategy.scope():
            strategy.run(lambda: tf.reduce_mean(model(x[:4]) / tf.zeros(3)))
    case "batch":
        options = tf.data.Options()
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(7)
        strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((x, y)))
        for part in strategy.experimental_distribute_dataset(data):
            strategy.run(lambda v: model(v[0][:, :5]), args=(part,))
    case "shape":
        model.fit(x[:, :5], y, batch_size=8, verbose=2)
    case "cross":
        variable = tf.Variable(0.0)
        with strategy.scope():
            strategy.run(lambda: variable.assign_add(tf.distribute.get_replica_context().merge_call(lambda s: 1)))
    case "replica":
        strategy.run(lambda: strategy.reduce("SUM", 1.0, axis=None))
    case "update":
        with strategy.scope():
            mirrored = tf.Variable(0.0)
        strategy.run(lambda: mirrored.assign(tf.distribute.get_replica_context().replica_id_in_sync_group * 1.5))
    case "keras":
        with strategy.scope():
            data = tf.data.Dataset.from_tensor_slices((x, y))
        model.fit(data, verbose=2)
