# SPDX-License-Identifier: Apache-2.0
"""Names of TensorFlow 1 that Treenail does not have, with what does their work here."""

from __future__ import annotations

_FEED = "read the data in Python and feed arrays: session.run(y, feed_dict={x: batch})"
_READERS = ("there are no readers of files in the graph: read in Python, in threads of your own if "
            "it is slow, and enqueue arrays (tn.FIFOQueue)")
_EXAMPLES = "there are no tf.Example records: keep data in NumPy or HDF5 files and feed arrays"
_FILES = "use Python's own files: open, os, glob, shutil"
_GRAPH_FILES = "use graph.save(path), and tn.load_graph or tn.import_graph"
_RANDOM = "draw the numbers with numpy.random and feed them"
_CELLS = "cells are in tn.nn.rnn_cell and tn.rnn"

_TOP = {
    "app": "call main() yourself, and parse options with argparse",
    "flags": "parse options with argparse",
    "contrib": "contrib.layers is tn.layers (xavier_initializer: tn.glorot_uniform_initializer, "
               "l2_regularizer: tn.regularizers.l2; recompute_grad: tn.recompute_grad), "
               "contrib.rnn is tn.nn.rnn_cell and tn.rnn, contrib.seq2seq is tn.seq2seq, "
               "contrib.eager is in tn itself (defun: tn.function; metrics: tn.metrics), "
               "contrib.staging.StagingArea is tn.StagingArea, "
               "contrib.lookup is tn.lookup (HashTable: tn.lookup.StaticHashTable, "
               "MutableHashTable: tn.lookup.experimental.MutableHashTable), "
               "contrib.framework's global step is tn.train.get_or_create_global_step",
    "data": _FEED, "estimator": "build the graph and run it in a loop, in a tn.Session",
    "keras": "tn.layers has layers, tn.train optimizers; a loop over session.run trains",
    "feature_column": "make columns with NumPy, and feed arrays",
    "gfile": _FILES, "io": _FILES + "; images are read by tn.image", "read_file": _FILES,
    "write_file": _FILES, "matching_files": "use glob.glob",
    "python_io": _EXAMPLES, "logging": "use Python's logging",
    "TestCase": "use unittest.TestCase",
    "create_partitioned_variables": "give tn.get_variable a partitioner "
                                    "(tn.fixed_size_partitioner)",
    "print": "tn.Print writes values on their way",
    "disable_eager_execution": "it is off unless tn.enable_eager_execution() was called",
    "enable_v2_behavior": "tn.enable_eager_execution() has operations run at once",
    "disable_v2_behavior": "operations build graphs unless tn.enable_eager_execution() was called",
    "GraphDef": _GRAPH_FILES, "NodeDef": _GRAPH_FILES, "MetaGraphDef": _GRAPH_FILES,
    "import_graph_def": _GRAPH_FILES, "graph_util": _GRAPH_FILES,
    "saved_model": _GRAPH_FILES + "; values of variables: tn.train.Saver",
    "TFRecordReader": _READERS, "TextLineReader": _READERS, "WholeFileReader": _READERS,
    "FixedLengthRecordReader": _READERS,
    "decode_csv": "read the file with numpy.loadtxt or csv, and feed arrays",
    "parse_example": _EXAMPLES, "parse_single_example": _EXAMPLES, "FixedLenFeature": _EXAMPLES,
    "VarLenFeature": _EXAMPLES, "FixedLenSequenceFeature": _EXAMPLES, "SparseFeature": _EXAMPLES,
    "Example": _EXAMPLES,
    "add_check_numerics_ops": "use tn.check_numerics on the tensors in question",
    "resource_loader": "use os.path.dirname(__file__)", "config": "use tn.ConfigProto",
    "collective_reduce": "use tn.distributed.all_reduce", "distributions": _RANDOM,
    "random_gamma": _RANDOM, "random_poisson": _RANDOM, "dtypes": "dtypes are names of tn itself, "
    "such as tn.float32", "manip": "use tn.roll, tn.reverse, tn.gather_nd, ...",
    "debugging": "tn.Assert, tn.assert_equal and the like are in tn itself",
    "batch_svd": "use tn.svd", "batch_matmul": "use tn.matmul",
    "nce_loss": "use tn.nn.nce_loss", "load_file_system_library": _FILES,
    "tensor_shape": "use tn.TensorShape",
    "HParams": "use a dict or types.SimpleNamespace", "sysconfig":
    "see tn.build_info()", "ragged": "pad the rows, with "
    "tn.sequence_mask, or use tn.SparseTensor", "RaggedTensor": "pad the rows, with "
    "tn.sequence_mask, or use tn.SparseTensor", "merge_all_summaries": "use tn.summary.merge_all",
}
_TRAIN = {
    "experimental": "mixed precision is tn.train.mixed_precision, a scope, and "
                    "tn.train.MixedPrecision, an optimizer around another",
    "NewCheckpointReader": "use tn.train.load_checkpoint",
    "write_graph": _GRAPH_FILES, "SummaryWriter": "use tn.summary.FileWriter",
    "Example": _EXAMPLES, "SequenceExample": _EXAMPLES, "Feature": _EXAMPLES,
    "Features": _EXAMPLES, "BytesList": _EXAMPLES, "FloatList": _EXAMPLES, "Int64List": _EXAMPLES,
}
_IMAGE = {"decode_gif": "read the frames in Python (Pillow), and feed arrays"}
_TESTS = "use unittest or pytest, and numpy.testing"
_TEST = {"TestCase": "use unittest.TestCase", "main": _TESTS, "mock": "use unittest.mock",
         "assert_equal_graph_def": _GRAPH_FILES, "get_temp_dir": "use tempfile",
         "test_src_dir_path": "use os.path.dirname(__file__)", "Benchmark": "use timeit",
         "StubOutForTesting": "use unittest.mock",
         "is_built_with_cuda": "see tn.build_info()", "is_built_with_gpu_support": "see "
         "tn.build_info()", "is_gpu_available": "see tn.Session().list_devices()",
         "gpu_device_name": "see tn.Session().list_devices()"}
_MUTABLE = "use tn.lookup.experimental.MutableHashTable, which needs no empty_key"
_LOOKUP = {"HashTable": "use tn.lookup.StaticHashTable(initializer, default_value)",
           "MutableHashTable": "use tn.lookup.experimental.MutableHashTable",
           "MutableDenseHashTable": _MUTABLE, "DenseHashTable": _MUTABLE,
           "IdTableWithHashBuckets": "use tn.lookup.StaticVocabularyTable(initializer, buckets)",
           "TextFileIdTableInitializer": "use tn.lookup.index_table_from_file",
           "TextFileStringTableInitializer": "use tn.lookup.index_to_string_table_from_file"}
_MODULES = {"treenail": _TOP, "treenail.train": _TRAIN, "treenail.image": _IMAGE,
            "treenail.test": _TEST, "treenail.lookup": _LOOKUP,
            "treenail.lookup.experimental": {"DenseHashTable": _MUTABLE},
            "treenail.random": {"gamma": _RANDOM, "poisson": _RANDOM}}


def advice(module: str, name: str) -> str:
    """What to use for TensorFlow 1's `name` in that module; '' where there is nothing to say."""
    return _MODULES.get(module, {}).get(name, "")
