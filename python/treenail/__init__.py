# SPDX-License-Identifier: Apache-2.0
"""Treenail: dataflow graphs, sessions and gradients in the style of TensorFlow 1.

    import treenail as tn
    x = tn.placeholder(tn.float32, [None, 784])
    y = tn.layers.dense(x, 10)
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        print(sess.run(y, feed_dict={x: images}))

Importing this package starts no thread and opens no library but its own; NumPy is imported with the
first array.
"""

try:
    from treenail import _treenail as _core
except ImportError as _error:
    from treenail import _library
    raise _library.explained(_error) from None
from treenail import (_accumulators, _array, _assertions, _assignments, _barrier,  # noqa: F401
                      _clip, _control, _control_flow, _counting, _custom_gradient, _derivatives,
                      _dlpack, _function, _functional, _gradient_rules, _gradients, _hooks, _math,
                      _partitioned, _plugins, _py_func, _random, _recompute, _replica, _session,
                      _sorting, _sparse, _staging, _tape, _tensor_array, _variable_scope,
                      _variables)
from treenail._absent import advice as _advice
from treenail._accumulators import *  # noqa: F401,F403
from treenail._array import *  # noqa: F401,F403
from treenail._assertions import *  # noqa: F401,F403
from treenail._assignments import *  # noqa: F401,F403
from treenail._barrier import *  # noqa: F401,F403
from treenail._clip import *  # noqa: F401,F403
from treenail._control import *  # noqa: F401,F403
from treenail._control_flow import *  # noqa: F401,F403
from treenail._counting import *  # noqa: F401,F403
from treenail._custom_gradient import *  # noqa: F401,F403
from treenail._derivatives import *  # noqa: F401,F403
from treenail._dlpack import *  # noqa: F401,F403
from treenail._convert import (IndexedSlices, IndexedSlicesValue, constant, convert_to_tensor,
                               convert_to_tensor_or_indexed_slices, is_tensor, placeholder,
                               placeholder_with_default)
from treenail._eager import eager, enable_eager_execution
from treenail._execute import execute, import_graph, load_graph
from treenail._function import *  # noqa: F401,F403
from treenail._framework import (Graph, GraphKeys, add_to_collection, add_to_collections,
                                 colocate_with, container, control_dependencies, device,
                                 executing_eagerly, get_collection, get_collection_ref,
                                 get_default_graph, get_seed,
                                 init_scope, name_scope, reset_default_graph, set_random_seed)
from treenail._functional import *  # noqa: F401,F403
from treenail._gradient_rules import *  # noqa: F401,F403
from treenail._gradients import *  # noqa: F401,F403
from treenail._math import *  # noqa: F401,F403
from treenail._names import no_attribute as _no_attribute
from treenail._partitioned import *  # noqa: F401,F403
from treenail._plugins import *  # noqa: F401,F403
from treenail._py_func import *  # noqa: F401,F403
from treenail._random import *  # noqa: F401,F403
from treenail._recompute import *  # noqa: F401,F403
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._refusals import public as _public
from treenail._replica import *  # noqa: F401,F403
from treenail._session import *  # noqa: F401,F403
from treenail._shape import TensorShape
from treenail._sorting import *  # noqa: F401,F403
from treenail._sparse import *  # noqa: F401,F403
from treenail._staging import *  # noqa: F401,F403
from treenail._tape import *  # noqa: F401,F403
from treenail._tensor_array import *  # noqa: F401,F403
from treenail._treenail import (DType, Operation, Tensor, as_dtype, bfloat16, bool, complex64,
                                complex128, float16, float32, float64, int8, int16, int32, int64,
                                resource, string, uint8, uint16, uint32, uint64, variant)
from treenail._variable_scope import *  # noqa: F401,F403
from treenail._variables import *  # noqa: F401,F403

__version__ = _core.__version__
double, half = float64, float16

build_info = _core.build_info

# Loaded when first asked for.
_SUBMODULES = ("audio", "autograph", "bitwise", "compat", "distribute", "distributed", "errors",
               "image", "initializers", "layers", "linalg", "lookup", "losses", "math", "metrics",
               "nn", "onnx", "placement", "profiler", "queue", "random", "raw_ops", "regularizers",
               "rnn", "seq2seq", "signal", "sparse", "spectral", "strings", "summary", "test",
               "train")
# Names that live in such a submodule.
_ELSEWHERE = {
    "zeros_initializer": ("initializers", "Zeros"), "ones_initializer": ("initializers", "Ones"),
    "constant_initializer": ("initializers", "Constant"),
    "random_uniform_initializer": ("initializers", "RandomUniform"),
    "random_normal_initializer": ("initializers", "RandomNormal"),
    "truncated_normal_initializer": ("initializers", "TruncatedNormal"),
    "uniform_unit_scaling_initializer": ("initializers", "UniformUnitScaling"),
    "variance_scaling_initializer": ("initializers", "VarianceScaling"),
    "glorot_uniform_initializer": ("initializers", "GlorotUniform"),
    "glorot_normal_initializer": ("initializers", "GlorotNormal"),
    "Summary": ("summary", "Summary"), "SummaryMetadata": ("summary", "SummaryMetadata"),
    "HistogramProto": ("summary", "HistogramProto"), "SessionLog": ("summary", "SessionLog"),
    "Event": ("summary", "Event"),
    "as_string": ("strings", "as_string"), "reduce_join": ("strings", "reduce_join"),
    "regex_replace": ("strings", "regex_replace"), "string_join": ("strings", "join"),
    "string_split": ("strings", "string_split"), "string_to_number": ("strings", "to_number"),
    "string_to_hash_bucket": ("strings", "to_hash_bucket"),
    "string_to_hash_bucket_fast": ("strings", "to_hash_bucket_fast"),
    "string_to_hash_bucket_strong": ("strings", "to_hash_bucket_strong"),
    "substr": ("strings", "substr"),
    "ensure_shape": ("_special", "ensure_shape"), "lbeta": ("_special", "lbeta"),
    "cholesky_solve": ("linalg", "cholesky_solve"), "svd": ("linalg", "svd"),
    "cross": ("linalg", "cross"), "norm": ("linalg", "norm"),
    "matrix_diag": ("linalg", "diag"), "matrix_diag_part": ("linalg", "diag_part"),
    "matrix_set_diag": ("linalg", "set_diag"), "matrix_solve_ls": ("linalg", "lstsq"),
    "self_adjoint_eig": ("linalg", "self_adjoint_eig"),
    "self_adjoint_eigvals": ("linalg", "self_adjoint_eigvals"),
    "sigmoid": ("nn", "sigmoid"), "OpError": ("errors", "OpError"),
    "QueueBase": ("queue", "QueueBase"), "FIFOQueue": ("queue", "FIFOQueue"),
    "PaddingFIFOQueue": ("queue", "PaddingFIFOQueue"),
    "RandomShuffleQueue": ("queue", "RandomShuffleQueue"),
    "PriorityQueue": ("queue", "PriorityQueue"),
    "tables_initializer": ("lookup._tables", "tables_initializer"),
    "initialize_all_tables": ("lookup._tables", "initialize_all_tables"),
}
# Ops of the registry that TensorFlow 1 has under these very names. The others can be reached by
# theirs, too, but are listed in raw_ops only.
_REGISTERED = (
    "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "betainc", "bitcast",
    "ceil", "check_numerics", "cholesky", "cos", "cosh", "decode_base64", "decode_raw", "digamma",
    "encode_base64", "equal", "erfc", "exp", "expm1", "extract_image_patches", "fft", "fft2d",
    "fft3d", "floor", "greater", "greater_equal", "ifft", "ifft2d", "ifft3d", "igamma", "igammac",
    "invert_permutation", "is_finite", "is_inf", "is_nan", "less", "less_equal", "lgamma", "log",
    "log1p", "logical_and", "logical_not", "logical_or", "matrix_band_part", "matrix_determinant",
    "matrix_inverse", "matrix_solve", "matrix_square_root", "matrix_triangular_solve", "maximum",
    "minimum", "not_equal", "parse_tensor", "polygamma", "qr", "reciprocal", "rint", "round",
    "rsqrt", "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum",
    "serialize_tensor", "sin", "sinh", "sparse_segment_mean", "sparse_segment_sqrt_n",
    "sparse_segment_sum", "squared_difference", "tan", "unique_with_counts", "unravel_index",
    "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod",
    "unsorted_segment_sum", "zeta")


def _op(name: str):
    """The registered op of this snake_case name as a function, or None."""
    if "names" not in _op_cache:
        _op_cache["names"] = _core.op_names()
    op_name = _op_cache["names"].get(name)
    return None if op_name is None else _core.op_function(op_name)


_op_cache: dict = {}


def __getattr__(name: str):
    if name in _SUBMODULES:
        import importlib
        return importlib.import_module("treenail." + name)
    if name in _ELSEWHERE:
        import importlib
        module, attribute = _ELSEWHERE[name]
        value = _public(getattr(importlib.import_module("treenail." + module), attribute))
    else:
        # An op that TensorFlow has under another name than a function of its own (print).
        value = None if name.startswith("_") or _advice(__name__, name) else _op(name)
        if value is None:
            raise _no_attribute(__name__, name, {*__all__, *_op_cache.get("names", ())})
    globals()[name] = value
    return value


__all__ = ["DType", "Operation", "Tensor", "as_dtype", "bfloat16", "bool", "complex64",
           "complex128", "float16", "float32", "float64", "int8", "int16", "int32", "int64",
           "resource", "string", "uint8", "uint16", "uint32", "uint64", "variant", "double", "half",
           "Graph", "GraphKeys", "add_to_collection", "add_to_collections", "colocate_with",
           "container", "control_dependencies", "device", "eager", "enable_eager_execution",
           "executing_eagerly", "get_collection",
           "get_collection_ref", "get_default_graph", "get_seed", "init_scope", "name_scope",
           "reset_default_graph", "set_random_seed", "TensorShape", "IndexedSlices",
           "IndexedSlicesValue", "constant",
           "convert_to_tensor", "convert_to_tensor_or_indexed_slices", "is_tensor", "placeholder",
           "placeholder_with_default", "execute", "load_graph", "import_graph", "build_info"]
__all__ += _accumulators.__all__
__all__ += _array.__all__
__all__ += _assertions.__all__
__all__ += _assignments.__all__
__all__ += _barrier.__all__
__all__ += _clip.__all__
__all__ += _control.__all__
__all__ += _control_flow.__all__
__all__ += _counting.__all__
__all__ += _custom_gradient.__all__
__all__ += _derivatives.__all__
__all__ += _dlpack.__all__
__all__ += _function.__all__
__all__ += _functional.__all__
__all__ += _gradient_rules.__all__
__all__ += _gradients.__all__
__all__ += _math.__all__
__all__ += _partitioned.__all__
__all__ += _plugins.__all__
__all__ += _py_func.__all__
__all__ += _random.__all__
__all__ += _recompute.__all__
__all__ += _replica.__all__
__all__ += _session.__all__
__all__ += _sorting.__all__
__all__ += _sparse.__all__
__all__ += _staging.__all__
__all__ += _tape.__all__
__all__ += _tensor_array.__all__
__all__ += _variable_scope.__all__
__all__ += _variables.__all__
__all__ += _SUBMODULES
__all__ += _ELSEWHERE
__all__ += _REGISTERED


def __dir__() -> list:
    return sorted(__all__) + ["__version__"]


_name_in_refusals(globals())
_core.check_environment()  # a wrong value is refused here, not by the first run
_core.load_environment_plugins()  # what TREENAIL_PLUGIN_PATH names; by default nothing
