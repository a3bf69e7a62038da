# SPDX-License-Identifier: Apache-2.0
"""The public functions, classes and methods, and one call of each with values of a seed."""

import importlib
import inspect
import pkgutil
import random

import treenail as tn
from hostile_values import hostile, plausible, shown
from instances import instance
from refusal_rule import problem

# Not called, and why.
LEFT_OUT = {
    "treenail.reset_default_graph": "asserts, as in TensorFlow, that no graph is entered",
    "treenail.onnx.Model": "made by the importer, from its own parts",
    "treenail.train.Coordinator.wait_for_stop": "waits for another thread",
    "treenail.train.QueueRunner.create_threads": "threads that run until another ends them",
    "treenail.train.LooperThread.run": "runs until another thread ends it",
    "treenail.train.LooperThread.start": "runs until another thread ends it",
    "treenail.train.LooperThread.loop": "runs until another thread ends it",
    "treenail.distributed.init": "waits for other processes",
    "treenail.distribute.MultiWorkerMirroredStrategy": "waits for other processes",
    "treenail.distribute.experimental.MultiWorkerMirroredStrategy": "waits for other processes",
    "treenail.compat.horovod.init": "waits for other processes",
    "treenail.distribute.cluster_resolver.SlurmClusterResolver": "needs Slurm's variables",
    "treenail.distribute.cluster_resolver.MPIClusterResolver": "needs a launcher's variables",
    "treenail.distribute.cluster_resolver.ClusterResolver.cluster_spec": "of subclasses",
    "treenail.Barrier.take_many": "waits for elements",
    "treenail.ConditionalAccumulator.take_grad": "waits for gradients",
    "treenail.MapStagingArea.get": "waits for a tuple",
    "treenail.MapStagingArea.peek": "waits for a tuple",
    "treenail.StagingArea.get": "waits for a tuple",
    "treenail.StagingArea.peek": "waits for a tuple",
    "treenail.SparseConditionalAccumulator.take_grad": "waits for gradients",
    "treenail.train.Server.join": "waits for another thread",
    "treenail.train.Server.start": "threads that run until another ends them",
    "treenail.train.Server.create_local_server": "threads that run until another ends them",
    "treenail.train.Supervisor.wait_for_stop": "waits for another thread",
    "treenail.train.Supervisor.loop": "runs until another thread ends it",
    "treenail.train.Supervisor.Loop": "runs until another thread ends it",
    "treenail.SparseConditionalAccumulator.take_indexed_slices_grad": "waits for gradients",
}
# Called, but what they give is not run: it waits for other runs.
_WAITING = {"treenail.FIFOQueue.%s" % name for name in (
    "dequeue", "dequeue_many", "dequeue_up_to", "enqueue_many")}
_WAITING.update("treenail.train." + name for name in (
    "batch", "batch_join", "maybe_batch", "maybe_batch_join", "maybe_shuffle_batch",
    "maybe_shuffle_batch_join", "shuffle_batch", "shuffle_batch_join", "slice_input_producer"))
_OPERATORS = ["__%s%s__" % (side, name) for side in ("", "r") for name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")]
_OPERATORS += ["__getitem__", "__lt__", "__le__", "__gt__", "__ge__"]


class Call:
    """A public function, the constructor of a class, or (cls is given) a method of it."""

    def __init__(self, full_name, function, cls=None):
        self.full_name, self.function, self.cls = full_name, function, cls
        own = full_name.rpartition(".")[2]
        self.documentation = "%s %s" % (inspect.getdoc(function), inspect.getdoc(cls or function))
        if cls is None:
            self.names = {own, getattr(function, "__name__", own)}
        else:
            called = cls.__name__ if own == "__call__" else "%s.%s" % (cls.__name__, own)
            self.names = {called, "%s.%s" % (cls.__name__, own)}
            self.names.add("%s.%s" % (cls.__name__, getattr(function, "__name__", own)))
            self.names.update("%s.%s" % (base.__name__, own) for base in cls.__mro__)
            if own.startswith("__"):  # an operator, those of variables being those of their values
                self.names.update((cls.__name__, "Tensor." + own.replace("__r", "__")))
        self.parameters = set(_parameters(function) or ())

    def bound(self, rng):
        """(what to call, the instance that it is a method of)."""
        if self.cls is None:
            return self.function, None
        made = instance(self.cls, rng)
        return getattr(made, self.full_name.rpartition(".")[2]), made


def _parameters(function):
    """{name: parameter}, or None where a compiled function does not tell."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


def public_modules():
    yield "treenail"
    for info in pkgutil.walk_packages(tn.__path__, "treenail."):
        parts = info.name.split(".")
        if not any(p.startswith("_") or p in ("families", "benchmark") for p in parts):
            yield info.name


def _public_values():
    """(name, function or class), each under the first name that shows it."""
    seen = set()
    for module_name in sorted(public_modules()):
        module = importlib.import_module(module_name)
        for name in sorted(module.__all__):
            value = getattr(module, name)
            full = "%s.%s" % (module_name, name)
            if inspect.ismodule(value) or not callable(value) or full in LEFT_OUT:
                continue
            if inspect.isclass(value) and issubclass(value, (BaseException, tuple)):
                continue
            if id(value) not in seen:
                seen.add(id(value))
                yield full, value


# What a MonitoredSession calls on its hooks, and hooks on their listeners, in an order of its own.
_OF_HOOKS = ("begin", "after_create_session", "before_run", "after_run", "end", "before_save",
             "after_save")


def _methods(cls):
    hook = issubclass(cls, (tn.train.SessionRunHook, tn.train.CheckpointSaverListener))
    for name in dir(cls):
        if hook and name in _OF_HOOKS:
            continue
        if name.startswith("_") and name not in ("__call__", *_OPERATORS):
            continue
        value = getattr(cls, name)
        if callable(value) and not inspect.isclass(value):
            yield name, value


def public_calls():
    """{name: Call}. A method stands under the name of one class that has it: of one without
    subclasses, for those with some leave methods to them."""
    calls, seen = {}, set()
    found = list(_public_values())
    for full, value in found:
        calls[full] = Call(full, value)
    classes = [(full, value) for full, value in found if inspect.isclass(value)]
    for full, cls in sorted(classes, key=lambda item: (bool(item[1].__subclasses__()), item[0])):
        for name, method in _methods(cls):
            own = getattr(method, "__func__", method)
            if getattr(own, "__objclass__", None) in (object, type) or id(own) in seen:
                continue
            home = getattr(own, "__module__", "")
            if "%s.%s" % (full, name) in LEFT_OUT or home == "threading":
                continue
            seen.add(id(own))
            calls["%s.%s" % (full, name)] = Call("%s.%s" % (full, name), method, cls)
    return calls


def arguments(function, rng):
    """Values for the required parameters and some others; one of them at least is hostile."""
    parameters = _parameters(function)
    compiled = not inspect.isfunction(function) and type(function).__name__ != "PublicFunction"
    if getattr(function, "__name__", "") in _OPERATORS and compiled:
        return [hostile(rng)], {}
    if parameters is None:
        return [hostile(rng) for _ in range(rng.randrange(3))], {}
    positional, named = [], {}
    asked = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    spoilt = rng.randrange(len(asked)) if asked else -1
    for i, p in enumerate(asked):
        required = p.default is p.empty
        if not required and i != spoilt and rng.random() > 0.15:
            continue
        bad = i == spoilt or rng.random() < 0.1
        value = hostile(rng) if bad else plausible(p.name, rng)
        if p.kind == p.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[p.name] = value
    return positional, named


def runnable(value):
    """Tensors and operations in what a call returned."""
    if isinstance(value, (tn.Tensor, tn.Operation)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in runnable(item)]
    return []


def _close(value):
    """Sessions and files do not outlive their call."""
    if isinstance(value, (tn.train.MonitoredSession, tn.train.SingularMonitoredSession)):
        if value.graph is not None:
            value.close()
    if isinstance(value, (tn.Session, tn.summary.FileWriter)):
        value.close()


def _called(function, positional, named, run):
    """Calls, and runs what is accepted."""
    result = function(*positional, **named)
    try:
        fetches = runnable(result) if run else []
        if fetches:
            with tn.Session() as session:
                session.run(fetches)
    finally:
        _close(result)


def attempt(call, seed):
    """None, or what is wrong with how the call was refused."""
    rng = random.Random("%s %d" % (call.full_name, seed))
    with tn.Graph().as_default():
        function, owner = call.bound(rng)
        positional, named = arguments(function, rng)
        values = dict({str(i): v for i, v in enumerate(positional)}, **named)
        if call.cls is not None:
            values["self"] = owner
        try:
            _called(function, positional, named, call.full_name not in _WAITING)
            return None
        except Exception as error:  # the wrong classes are what is looked for
            wrong = problem(error, call, values)
        finally:
            _close(owner)
    told = ", ".join([shown(v) for v in positional]
                     + ["%s=%s" % (k, shown(v)) for k, v in named.items()])
    return wrong and "%s(%s), seed %d: %s" % (call.full_name, told, seed, wrong)
