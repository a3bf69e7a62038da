#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files that one machine writes and another reads, whatever its byte order.

    exchange.py write DIR    a graph, a checkpoint, summaries, encoded images, random numbers
    exchange.py read DIR     reads what another machine wrote, and computes the same from it

What is named same-* must be the same bytes on every machine; the rest has times or results in it.
"""

import os
import struct
import sys

import numpy as np
from event_file import message, records

import treenail as tn

DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "bool", "complex64", "complex128")
SEED = 77


def constant(name):
    """Values with different bytes at every place, and the same on every machine."""
    real = np.linspace(-3, 100, 24).reshape(2, 3, 4)
    dtype = np.dtype(name)
    if dtype.kind == "c":
        return (real + 1j * real[::-1]).astype(dtype)
    return (np.abs(real) * 2.5).astype(dtype) if dtype.kind in "ub" else real.astype(dtype)


def build():
    """A graph with a constant of each dtype, two variables, a product and an image."""
    for name in DTYPES:
        tn.constant(constant(name), name="constant_" + name)
    tn.constant(["bytes", b"\x00\xff", "länger als sonst"], name="strings")
    tn.cast(tn.constant(constant("float32")), tn.bfloat16, name="half_as_long")
    weights = tn.get_variable("layer/weights", dtype=tn.float32, initializer=constant("float32"))
    steps = tn.get_variable("steps", dtype=tn.int64, initializer=np.int64(2) ** 40 + 3)
    product = tn.matmul(tn.constant(constant("float32").reshape(6, 4)), tn.reshape(weights, [4, 6]),
                        name="product")
    tn.reduce_sum(tn.exp(product * 1e-5), name="total")
    tn.add(steps, 1, name="next_step")
    image = tn.cast(tn.reshape(tn.range(192), [8, 8, 3]), tn.uint8)
    tn.identity(tn.image.encode_png(image), name="png")
    tn.identity(tn.random.stateless_normal([16], [SEED, 1]), name="normal")
    return tn.summary.merge([tn.summary.scalar("one", 0.1),
                             tn.summary.histogram("many", constant("float32"))])


def computed(session):
    """{name: array} of what the graph computes, but for strings."""
    names = ["constant_" + name for name in DTYPES] + [
        "half_as_long", "product", "total", "next_step", "normal", "layer/weights", "steps"]
    values = session.run([session.graph.get_tensor_by_name(name + ":0") for name in names])
    return {name.replace("/", "."): np.asarray(value, dtype=np.float32) if name == "half_as_long"
            else np.asarray(value) for name, value in zip(names, values)}


def write(folder):
    os.makedirs(folder, exist_ok=True)
    summary = build()
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        saver = tn.train.Saver()
        session.graph.save(os.path.join(folder, "same-graph"))
        saver.save(session, os.path.join(folder, "model"))
        np.savez(os.path.join(folder, "results.npz"), **computed(session))
        png, merged = session.run(["png:0", summary])
        for name, data in (("same-image.png", png), ("same-summary", merged)):
            with open(os.path.join(folder, name), "wb") as stream:
                stream.write(data)
        writer = tn.summary.FileWriter(os.path.join(folder, "events"))
        writer.add_summary(merged, 7)
        writer.close()


def read(folder):
    graph = tn.load_graph(os.path.join(folder, "same-graph"))
    expected = np.load(os.path.join(folder, "results.npz"))
    with open(os.path.join(folder, "same-image.png"), "rb") as stream:
        data = stream.read()
    with graph.as_default(), tn.Session(graph=graph) as session:
        pixels = tn.image.decode_png(data)
        tn.train.Saver().restore(session, os.path.join(folder, "model"))
        found = computed(session)
        strings, image = session.run(["strings:0", pixels])
    for name, value in found.items():
        there = expected[name]
        assert value.shape == there.shape and value.dtype.name == there.dtype.name, name
        # What is computed may differ by rounding from one instruction set to the next.
        rounded = name in ("product", "total", "normal")
        np.testing.assert_allclose(value, there, rtol=1e-5 if rounded else 0, err_msg=name)
    for name in DTYPES:
        np.testing.assert_array_equal(found["constant_" + name], constant(name))
    assert [bytes(s) for s in strings] == [b"bytes", b"\x00\xff", "länger als sonst".encode()]
    np.testing.assert_array_equal(image, np.arange(192).reshape(8, 8, 3).astype(np.uint8))
    events, = os.listdir(os.path.join(folder, "events"))
    with open(os.path.join(folder, "same-summary"), "rb") as stream:
        summary = stream.read()
    # Events: 1 is the time, 2 the step, 3 the version of the file, 5 the summary.
    with open(os.path.join(folder, "events", events), "rb") as stream:
        first, second = map(message, records(stream.read()))
    assert first[3] == [b"brain.Event:2"] and 5 not in first, first
    assert (second[2], second[5]) == ([7], [summary]), second
    for event in (first, second):
        assert struct.unpack("<d", event[1][0])[0] > 1.6e9, event  # some time after 2020
    print("%d values, %d strings, an image, a checkpoint, 2 events: as expected" % (
        len(found), len(strings)))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("read", "write"):
        sys.exit(__doc__)
    {"read": read, "write": write}[sys.argv[1]](sys.argv[2])
