# SPDX-License-Identifier: Apache-2.0
"""The same single operations in TensorFlow 2: tf.function. Arguments: threads, and `xla` where XLA
shall compile them (jit_compile).
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def main() -> None:
    import tensorflow as tf
    import works
    threads = int(sys.argv[1])
    xla = sys.argv[2:] == ["xla"]
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)

    def chain(work, x):
        y = tf.nn.relu(x * 1.1 + 0.5) * 0.9
        return tf.tanh(y + x - 0.3) * 2.0

    def layer_norm(work, x):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, tf.zeros([1024]), tf.ones([1024]),
                                         1e-5)

    def conv(work, x, f):
        pad = [f.shape[0] // 2] * 2
        return tf.nn.conv2d(x, f, work.stride, "SAME" if work.stride == 1 else
                            [[0, 0], pad, pad, [0, 0]])

    def conv_gradients(work, x, f):
        with tf.GradientTape() as tape:
            tape.watch([x, f])
            y = conv(work, x, f)
        return [y, *tape.gradient(y, [x, f])]

    functions = {
        "add": lambda work, x, y: x + y,
        "chain": chain,
        "tanh": lambda work, x: tf.tanh(x),
        "gelu": lambda work, x: tf.nn.gelu(x, approximate=True),
        "softmax": lambda work, x: tf.nn.softmax(x),
        "layer_norm": layer_norm,
        "sum": lambda work, x: tf.reduce_sum(x),
        "transpose": lambda work, x: tf.transpose(x),
        "matmul": lambda work, x, y: tf.matmul(x, y),
        "conv": conv,
        "conv_gradients": conv_gradients,
        "fft": lambda work, x: tf.signal.fft(x),
        "rfft": lambda work, x: tf.signal.rfft(x),
    }

    def call_of(work):
        if work.kind not in functions:  # linear algebra: theirs is LAPACK too, or slower
            raise NotImplementedError(work.kind)
        inputs = [tf.constant(value) for value in work.inputs()]
        call = tf.function(lambda *given: functions[work.kind](work, *given),
                           jit_compile=xla or None)

        def finished():
            """XLA returns before it has computed; a look at the bytes waits, and copies nothing."""
            result = call(*inputs)
            for value in result if isinstance(result, list) else [result]:
                memoryview(value)
            return result

        return finished

    harness.serve_works({"version": tf.__version__}, works.BY_TITLE, call_of)


main()
