# SPDX-License-Identifier: Apache-2.0
"""What tab completion, `import *` and help() show, and what a wrong name is told."""

import importlib
import inspect
import pkgutil
import re

import pytest

import treenail as tn

STRAY = {"annotations", "TYPE_CHECKING", "ops", "os", "re", "sys", "threading", "time", "index",
         "builtins", "numpy"}


def public_modules():
    found = ["treenail"]
    for info in pkgutil.walk_packages(tn.__path__, "treenail."):
        parts = info.name.split(".")
        if not any(p.startswith("_") or p == "families" for p in parts):
            found.append(info.name)
    return found


MODULES = public_modules()


def test_the_modules_are_these():
    named = {"treenail." + name for name in tn._SUBMODULES}
    assert set(MODULES) == named | {"treenail", "treenail.rnn.rnn_cell", "treenail.benchmark",
                                    "treenail.compat.horovod",
                                    "treenail.distribute.cluster_resolver",
                                    "treenail.distribute.experimental",
                                    "treenail.lookup.experimental",
                                    "treenail.autograph.experimental"}


@pytest.mark.parametrize("module_name", MODULES)
def test_a_module_shows_its_public_names_and_no_others(module_name):
    module = importlib.import_module(module_name)
    names = list(module.__all__)
    assert len(names) == len(set(names)), "a name is there twice"
    shown = [name for name in dir(module) if not name.startswith("_")]
    assert sorted(shown) == sorted(names)
    assert not STRAY & set(names)
    assert not [name for name in names if name.startswith("_")]
    given: dict = {}
    exec("from %s import *" % module_name, given)
    assert set(given) - {"__builtins__"} == set(names)
    for name in names:
        assert given[name] is getattr(module, name)
        if inspect.ismodule(given[name]):
            assert given[name].__name__ in MODULES, name


def described(value):
    """(name, signature) of a function, or of a class's constructor and methods."""
    yield "", value
    if inspect.isclass(value):
        for name, method in vars(value).items():
            if inspect.isroutine(method) and not name.startswith("_"):
                yield "." + name, method


@pytest.mark.parametrize("module_name", MODULES)
def test_signatures_can_be_read(module_name):
    """No default is the address of an object."""
    module = importlib.import_module(module_name)
    for name in module.__all__:
        value = getattr(module, name)
        if not callable(value):
            continue
        for suffix, function in described(value):
            try:
                text = str(inspect.signature(function))
            except (TypeError, ValueError):  # compiled functions say theirs in their docstring
                continue
            assert " at 0x" not in text, name + suffix + text
            assert not re.search(r"=<(?!class|built-in|tn\.)", text), name + suffix + text


def test_help_shows_initializers():
    text = inspect.signature(tn.layers.dense)
    assert "bias_initializer: 'Any' = Zeros()" in str(text)
    assert "window_fn: 'Callable | None' = hann_window" in str(inspect.signature(tn.signal.stft))


@pytest.mark.parametrize("module,wrong,right", [
    (tn, "reduce_maen", "reduce_mean"), (tn, "Sesion", "Session"),
    (tn, "plaecholder", "placeholder"), (tn.nn, "sofmax", "softmax"),
    (tn.layers, "desne", "dense"), (tn.train, "AdamOptimiser", "AdamOptimizer"),
    (tn.losses, "mean_square_error", "mean_squared_error"), (tn.math, "reduce_smu", "reduce_sum"),
    (tn.summary, "scaler", "scalar"), (tn.errors, "NotFoundErorr", "NotFoundError"),
    (tn.raw_ops, "MatMull", "MatMul"), (tn.nn.rnn_cell, "LTSMCell", "LSTMCell")])
def test_a_wrong_name_is_told_the_nearest(module, wrong, right):
    with pytest.raises(AttributeError) as caught:
        getattr(module, wrong)
    assert str(caught.value) == "module '%s' has no attribute '%s'; did you mean '%s'?" % (
        module.__name__, wrong, right)


def test_a_name_near_nothing():
    with pytest.raises(AttributeError, match="^module 'treenail' has no attribute 'zyzzyva'$"):
        getattr(tn, "zyzzyva")
    assert not hasattr(tn, "__wrapped__") and not hasattr(tn.nn, "_private")


# From 545 public programs: what they use of TensorFlow 1 and Treenail does not have.
ABSENT = """
Example FIFOQueue FixedLenFeature FixedLenSequenceFeature GradientTape GraphDef HParams MetaGraphDef
NodeDef Print RandomShuffleQueue SparseFeature TFRecordReader TensorArray TensorSpec TestCase
TextLineReader VarLenFeature WholeFileReader add_check_numerics_ops app flags assert_rank
batch_svd case collective_reduce compat cond config container contrib custom_gradient data
decode_csv disable_eager_execution dtypes enable_eager_execution foldl function
gfile import_graph_def io keras estimator load_file_system_library logging map_fn
matrix_determinant metrics nce_loss parse_example parse_single_example print py_func python_io
read_file resource_loader saved_model test while_loop
train.BytesList train.Checkpoint train.ClusterSpec train.Coordinator train.Example train.Feature
train.Features train.FloatList train.Int64List train.MonitoredTrainingSession train.QueueRunner
train.Server train.batch train.import_meta_graph train.replica_device_setter train.shuffle_batch
train.slice_input_producer train.start_queue_runners train.string_input_producer train.write_graph
image.decode_gif
"""


@pytest.mark.parametrize("path", ABSENT.split())
def test_a_name_of_tensorflow_is_told_what_to_use(path):
    module, _, name = path.rpartition(".")
    module = getattr(tn, module) if module else tn
    if hasattr(module, name):
        pytest.skip("it is there by now")
    with pytest.raises(AttributeError, match=r"has no attribute '%s': \w" % name):
        getattr(module, name)


def test_what_the_advice_names_exists():
    from treenail import _absent
    for names in _absent._MODULES.values():
        for text in names.values():
            for path in re.findall(r"\btn\.(\w+(?:\.\w+)*)", text):
                value = tn
                for part in path.split("."):
                    value = getattr(value, part)


def test_texts_of_objects():
    x = tn.placeholder(tn.float32, [None, 3], name="x")
    assert repr(tn.train.AdamOptimizer(0.01)) == (
        "<tn.train.AdamOptimizer 'Adam' learning_rate=0.01 beta1=0.9 beta2=0.999 epsilon=1e-08>")
    layer = tn.layers.Dense(2, activation="relu", kernel_initializer="he_normal")
    assert repr(layer) == "<tn.layers.Dense 'dense' units=2 activation=relu " \
                          "kernel_initializer='he_normal'>"
    layer(x)
    assert repr(layer).endswith(" kernel(3, 2) bias(2,)>")
    assert repr(tn.train.Saver()) == "<tn.train.Saver of 2 variables>"
    with tn.variable_scope("a") as scope:
        assert repr(scope) == "<tn.VariableScope 'a' reuse=False>"
    assert repr(x) == "<tn.Tensor 'x:0' shape=[?,3] dtype=float32>"
    assert repr(x.op) == "<tn.Operation 'x' type=Placeholder>"
    assert repr(tn.initializers.RandomNormal(stddev=0.1, dtype=tn.float64)) == (
        "RandomNormal(stddev=0.1, dtype='float64')")
    assert repr(tn.nn.rnn_cell.GRUCell(4)).startswith("<tn.rnn.GRUCell 'gru_cell' num_units=4")

    class Mine(tn.train.Optimizer):
        def __init__(self, rate):
            super().__init__(False, "Mine")
            self._rate = rate
    assert repr(Mine(tn.constant(1.0, name="rate"))) == (
        "<Mine 'Mine' rate=<tn.Tensor 'rate:0' shape=[] dtype=float32>>")
