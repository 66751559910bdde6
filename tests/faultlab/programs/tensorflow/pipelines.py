import gzip
import os

import tensorflow as tf
from fit import Fit

job = Fit(epochs=1)
model = job.train()
match job.how:
    case "record":
        for _ in tf.data.TFRecordDataset("data/train-00000.tfrecord"):
            pass
    case "corrupt":
        with tf.io.TFRecordWriter("train.tfrecord") as out:
            for n in range(30):
                out.write(b"sample" * n)
        with open("train.tfrecord", "r+b") as stream:
            stream.seek(900)
            stream.write(os.urandom(60))
        print(sum(1 for _ in tf.data.TFRecordDataset("train.tfrecord")))
    case "cut":
        with tf.io.TFRecordWriter("train.tfrecord") as out:
            for n in range(30):
                out.write(b"sample" * 40)
        os.truncate("train.tfrecord", 3000)
        print(sum(1 for _ in tf.data.TFRecordDataset("train.tfrecord")))
    case "parse":
        example = tf.train.Example().SerializeToString()
        tf.io.parse_single_example(example, {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)})
    case "image":
        with open("0.jpg", "wb") as out:
            out.write(b"<html>not found</html>")
        list(tf.data.Dataset.list_files("*.jpg").map(lambda name: tf.io.decode_image(tf.io.read_file(name))))
    case "pattern":
        tf.data.Dataset.list_files("images/*.jpg")
    case "generator":
        def rows():
            yield from ({"x": [1.0, 2.0]}, {"x": [1.0]}, {"y": 3})

        list(tf.data.Dataset.from_generator(rows, output_signature={"x": tf.TensorSpec((2,), tf.float32)}))
    case "python":
        def load(n):
            return {0: 1.0, 1: 2.0}[int(n)]

        list(tf.data.Dataset.range(4).map(lambda n: tf.py_function(load, [n], tf.float32), num_parallel_calls=2))
    case "batch":
        list(tf.data.Dataset.from_generator(lambda: ([1.0] * n for n in (2, 2, 3)), tf.float32).batch(3))
    case "end":
        feed = iter(tf.data.Dataset.range(3))
        for _ in range(5):
            next(feed)
    case "exhausted":
        data = tf.data.Dataset.from_tensor_slices(job.data(16)).batch(8)
        model.fit(data, steps_per_epoch=10, epochs=2, verbose=2)
        raise SystemExit(int(model.optimizer.iterations) < 20)
    case "csv":
        with open("t.csv", "w") as out:
            out.write("a,b\n1,2\n3,x\n")
        list(tf.data.experimental.CsvDataset("t.csv", [tf.float32, tf.float32], header=True))
    case "gzip":
        with gzip.open("t.gz", "wb") as out:
            out.write(b"x" * 400)
        os.truncate("t.gz", 20)
        list(tf.data.TFRecordDataset("t.gz", compression_type="GZIP"))
    case "scheme":
        list(tf.data.TextLineDataset("gs3://bucket/train.txt"))
