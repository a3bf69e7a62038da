#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of one GPU: products, memory traffic, training steps, one operation, convolutions.

    build/python3 bench/gpu/figures.py --output treenail.json
    python3 bench/gpu/figures.py --framework torch --output torch.json

Each framework runs in a process of its own, with its own interpreter, and computes the same. A
figure is the median of rounds, in seconds; `compare.py` puts two files side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any, Callable, Dict, List

ROUNDS = 15


def median_of(run: Callable[[], Any], repeats: int) -> Dict[str, float]:
    """Seconds of one of `repeats` runs, over rounds; the first round is not counted."""
    times: List[float] = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        times.append((time.perf_counter() - start) / repeats)
    times = sorted(times[1:])
    return {"median": statistics.median(times), "least": times[0], "most": times[-1]}


class Treenail:
    """Graphs that are run without fetches; a run ends when the device is done."""

    def __init__(self) -> None:
        import treenail as tn
        self.tn = tn
        self.version = tn.__version__

    def session(self, build: Callable[[], Any]) -> Callable[[], Any]:
        """What runs the operation that build() gives, its variables initialised."""
        tn = self.tn
        graph = tn.Graph()
        with graph.as_default(), tn.device("/device:GPU:0"):
            target = build()
            start = tn.global_variables_initializer()
        session = tn.Session(graph=graph, config=tn.ConfigProto(allow_soft_placement=True))
        session.run(start)
        session.run(target)
        call = session.make_callable(target)
        return call

    def variable(self, shape: List[int], dtype: str) -> Any:
        tn = self.tn
        value = tn.cast(tn.random_uniform(shape, -1.0, 1.0, seed=1), dtype)
        return tn.get_variable("v%d" % len(tn.global_variables()), initializer=value)

    def product(self, n: int, dtype: str, count: int) -> Callable[[], Any]:
        def build() -> Any:
            a, b = self.variable([n, n], dtype), self.variable([n, n], dtype)
            out = []
            for _ in range(count):  # one after the other, so that none is the same as another
                with self.tn.control_dependencies(out[-1:]):
                    out.append(self.tn.matmul(a, b).op)
            return self.tn.group(*out)
        return self.session(build)

    def add(self, elements: int) -> Callable[[], Any]:
        def build() -> Any:
            return (self.variable([elements], "float32") + 1.0).op
        return self.session(build)

    def mlp(self, batch: int) -> Callable[[], Any]:
        tn = self.tn

        def build() -> Any:
            h = self.variable([batch, 784], "float32")
            labels = tn.zeros([batch], tn.int32)
            for width in (512, 256, 10):
                w = self.variable([h.shape[1], width], "float32")
                b = self.variable([width], "float32")
                h = tn.nn.bias_add(tn.matmul(h, w), b)
                h = tn.nn.relu(h) if width != 10 else h
            loss = tn.reduce_mean(
                tn.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=h))
            return tn.train.GradientDescentOptimizer(1e-4).minimize(
                loss, var_list=tn.trainable_variables()[1:])
        return self.session(build)

    def convolution(self, batch: int, size: int, channels: int, dtype: str) -> Callable[[], Any]:
        tn = self.tn

        def build() -> Any:
            x = self.variable([batch, size, size, channels], dtype)
            w = self.variable([3, 3, channels, channels], dtype)
            y = tn.nn.conv2d(x, w, 1, "SAME")
            gradients = tn.gradients(y, [x, w], grad_ys=[self.variable(y.shape.as_list(), dtype)])
            return tn.group(y.op, *[g.op for g in gradients])
        return self.session(build)

    def resnet50(self, batch: int) -> Callable[[], Any]:
        from treenail.benchmark._models import MODELS, Inputs
        from treenail.benchmark._step import Learning, Step
        step = Step(MODELS["resnet50"], Inputs(batch, 224, True, "NHWC"),
                    Learning("sgd", 0.016, 4e-5), 1, "/device:GPU:0")
        session = self.tn.Session(graph=step.graph,
                                  config=self.tn.ConfigProto(allow_soft_placement=True))
        session.run(step.initialize)
        call = session.make_callable(step.update)
        call()
        return call

    def tensor_float(self, allowed: bool) -> None:
        os.environ["TREENAIL_GPU_TF32"] = "1" if allowed else "0"

    def one(self) -> Callable[[], Any]:
        def build() -> Any:
            return (self.variable([1], "float32") + 1.0).op
        return self.session(build)


class Torch:
    """The same by PyTorch, eager."""

    def __init__(self) -> None:
        import torch
        self.torch = torch
        self.version = torch.__version__

    def rand(self, shape: List[int], dtype: str) -> Any:
        return (self.torch.rand(shape, device="cuda") * 2 - 1).to(getattr(self.torch, dtype))

    def synchronised(self, run: Callable[[], Any]) -> Callable[[], Any]:
        def call() -> None:
            run()
            self.torch.cuda.synchronize()
        call()
        return call

    def product(self, n: int, dtype: str, count: int) -> Callable[[], Any]:
        a, b = self.rand([n, n], dtype), self.rand([n, n], dtype)
        return self.synchronised(lambda: [self.torch.matmul(a, b) for _ in range(count)])

    def add(self, elements: int) -> Callable[[], Any]:
        x = self.rand([elements], "float32")
        return self.synchronised(lambda: x + 1.0)

    def mlp(self, batch: int) -> Callable[[], Any]:
        torch, x = self.torch, self.rand([batch, 784], "float32")
        net = torch.nn.Sequential(
            torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256),
            torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
        labels = torch.zeros(batch, dtype=torch.long, device="cuda")
        optimizer = torch.optim.SGD(net.parameters(), 1e-4)

        def step() -> None:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), labels).backward()
            optimizer.step()
        return self.synchronised(step)

    def convolution(self, batch: int, size: int, channels: int, dtype: str) -> Callable[[], Any]:
        torch = self.torch
        layout = torch.contiguous_format if dtype == "float32" else torch.channels_last
        x = self.rand([batch, channels, size, size], dtype).to(memory_format=layout)
        w = self.rand([channels, channels, 3, 3], dtype).to(memory_format=layout)
        gradient = self.rand([batch, channels, size, size], dtype).to(memory_format=layout)
        x.requires_grad = w.requires_grad = True

        def step() -> None:
            x.grad = w.grad = None
            torch.nn.functional.conv2d(x, w, padding=1).backward(gradient)
        return self.synchronised(step)

    def resnet50(self, batch: int) -> Callable[[], Any]:
        import torchvision
        torch, net = self.torch, torchvision.models.resnet50().cuda()
        images = self.rand([batch, 3, 224, 224], "float32")
        labels = torch.zeros(batch, dtype=torch.long, device="cuda")
        optimizer = torch.optim.SGD(net.parameters(), 0.016, weight_decay=4e-5)

        def step() -> None:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(images), labels).backward()
            optimizer.step()
        return self.synchronised(step)

    def tensor_float(self, allowed: bool) -> None:
        self.torch.backends.cudnn.allow_tf32 = allowed
        self.torch.backends.cuda.matmul.allow_tf32 = allowed

    def one(self) -> Callable[[], Any]:
        x = self.rand([1], "float32")
        return self.synchronised(lambda: x + 1.0)


def figures(framework: Any) -> Dict[str, Any]:
    found: Dict[str, Any] = {}

    def measure(name: str, run: Callable[[], Any], repeats: int, **work: float) -> None:
        found[name] = dict(median_of(run, repeats), **work)
        print(name, found[name], file=sys.stderr, flush=True)

    for n, count, repeats in ((8192, 4, 4), (2048, 16, 4), (512, 64, 4)):
        for dtype in ("bfloat16", "float32"):
            measure("product %s %d" % (dtype, n), framework.product(n, dtype, count), repeats,
                    flops=2.0 * n ** 3 * count)
    measure("add 256 MiB", framework.add(1 << 26), 20, bytes=2.0 * (1 << 28))
    measure("step of an MLP, batch 64", framework.mlp(64), 50)
    measure("one operation", framework.one(), 200)
    for allowed, kind in ((False, "float32"), (True, "TF32")):
        framework.tensor_float(allowed)
        measure("convolution 3x3, 64 channels, 56², batch 64, with gradients, " + kind,
                framework.convolution(64, 56, 64, "float32"), 20)
        measure("convolution 3x3, 512 channels, 7², batch 64, with gradients, " + kind,
                framework.convolution(64, 7, 512, "float32"), 20)
        measure("step of ResNet-50, batch 64, " + kind, framework.resnet50(64), 2)
    measure("convolution 3x3, 64 channels, 56², batch 64, with gradients, bfloat16",
            framework.convolution(64, 56, 64, "bfloat16"), 20)
    measure("convolution 3x3, 512 channels, 7², batch 64, with gradients, bfloat16",
            framework.convolution(64, 7, 512, "bfloat16"), 20)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--framework", choices=["treenail", "torch"], default="treenail")
    parser.add_argument("--output", required=True, metavar="FILE", help="JSON")
    options = parser.parse_args()
    framework = Treenail() if options.framework == "treenail" else Torch()
    result = {"framework": options.framework, "version": str(framework.version),
              "figures": figures(framework)}
    with open(options.output, "w", encoding="utf-8") as stream:
        json.dump(result, stream, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
