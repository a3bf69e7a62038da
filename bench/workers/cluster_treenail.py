# SPDX-License-Identifier: Apache-2.0
"""What sessions at servers take: an empty run, and tensors that go from one task to another.

`serve CLUSTER JOB` runs a task and says when; `ask CLUSTER` prints a line of JSON for each figure.
"""

import json
import sys
import time

import treenail as tn

SMALL = 200  # values of 64 elements
MANY = 64  # values of 1 MiB


def serve(cluster, job):
    server = tn.train.Server(cluster, job)
    print("listens", flush=True)
    server.join()


def median(run, count):
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        run()
        took.append(time.perf_counter() - begun)
    return sorted(took)[count // 2]


def moved_from(sender, receiver, size, count=1):
    """An operation that moves so many values of so many bytes."""
    with tn.device(sender):
        values = [tn.get_variable("v%d_%d_%d" % (size, count, i), [size // 4],
                                  initializer=tn.ones_initializer()).read_value()
                  for i in range(count)]
    with tn.device(receiver):
        return tn.group(*[tn.identity(value) for value in values])


def ask(cluster):
    def say(name, size, seconds):
        print(json.dumps({"name": name, "bytes": size, "seconds": seconds}), flush=True)

    target = "grpc://" + cluster["worker"][0]
    nothing = tn.no_op()
    moved = {size: moved_from("/job:ps", "/job:worker", size)
             for size in (1 << 20, 16 << 20, 64 << 20)}
    many = moved_from("/job:ps", "/job:worker", 1 << 20, MANY)
    small = {}
    for name, shape in (("together", [64]), ("one by one", [None])):  # only of a known size
        with tn.device("/job:ps"):
            value = tn.placeholder_with_default(tn.ones([64]), shape)
            values = [value + float(i) for i in range(SMALL)]
        with tn.device("/job:worker"):
            small[name] = tn.group(*[tn.identity(each) for each in values])
    with tn.Session(target) as session:
        session.run(tn.global_variables_initializer())
        session.run(nothing)
        say("empty", 0, median(session.make_callable(nothing), 2000))
        for size, operation in moved.items():
            run = session.make_callable(operation)
            run()
            say("moved", size, median(run, 40))
        run = session.make_callable(many)
        run()
        say("many", 1 << 20, median(run, 40) / MANY)
        for name, operation in small.items():
            run = session.make_callable(operation)
            run()
            say("small, " + name, SMALL, median(run, 40))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(json.loads(sys.argv[2]), sys.argv[3])
    else:
        ask(json.loads(sys.argv[2]))
