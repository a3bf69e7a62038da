# SPDX-License-Identifier: Apache-2.0
"""Static shapes of tn's array functions (tensorflow/core/ops/array_ops.cc, python/ops/array_ops.py)
and of random numbers."""

import numpy as np

import treenail as tn
from static_shapes import ANY, excuse, row, rows

# --- The same shape
rows("identity stop_gradient zeros_like ones_like", lambda f, p: f(p.f(None, 3)), [None, 3])
rows("identity stop_gradient zeros_like ones_like", lambda f, p: f(p.u(2, 3)), ANY)
rows("zeros_like ones_like", lambda f, p: f(p.f(None, 3), tn.int32), [None, 3])
row("identity_n", lambda p: tn.identity_n([p.f(None), p.i(2, 3)]), ([None], [2, 3]))
row("tuple", lambda p: tn.tuple([tn.identity(p.f(None)), tn.identity(p.f(2, 3))]), ([None], [2, 3]))
row("placeholder", lambda p: p.f(None, 3), [None, 3])
row("placeholder_with_default", lambda p: tn.placeholder_with_default(tn.ones([2, 3]), [None, 3]),
    [None, 3])
row("reverse", lambda p: tn.reverse(p.f(None, 3), [1]), [None, 3])
row("reverse", lambda p: tn.reverse(p.f(None, 3), p.v([1])), [None, 3])
row("reverse_sequence", lambda p: tn.reverse_sequence(p.f(None, 3, 4), p.i(None), 1, 0),
    [None, 3, 4])
row("reverse_sequence", lambda p: tn.reverse_sequence(p.f(None, 3), p.i(2), 1, 0), [2, 3])
row("roll", lambda p: tn.roll(p.f(None, 3), p.n(1), 1), [None, 3])
row("sort", lambda p: tn.sort(p.f(None, 3)), [None, 3])
row("sort", lambda p: tn.sort(p.f(None, 3), 0, "DESCENDING"), [None, 3])
row("argsort", lambda p: tn.argsort(p.f(None, 3), 0), [None, 3])
for name in "tensor_scatter_update", "tensor_scatter_add", "tensor_scatter_sub":
    rows(name, lambda f, p: f(p.f(None, 3), [[0]], p.f(1, 3)), [None, 3])

# --- Constants and shapes
row("constant", lambda p: tn.constant([[1.0, 2.0]]), [1, 2])
row("constant", lambda p: tn.constant(1.0, shape=[2, 0]), [2, 0])
row("convert_to_tensor", lambda p: tn.convert_to_tensor([p.f(None), p.f(None)]), [2, None])
row("convert_to_tensor_or_indexed_slices",
    lambda p: tn.convert_to_tensor_or_indexed_slices(p.f(None, 2)), [None, 2])
row("convert_to_tensor_or_sparse_tensor",
    lambda p: tn.convert_to_tensor_or_sparse_tensor(p.f(None, 2)), [None, 2])
row("shape", lambda p: tn.shape(p.f(None, 3)), [2])
row("shape", lambda p: tn.shape(p.u(2, 3)), [None])
row("shape_n", lambda p: tn.shape_n([p.f(None, 3), p.u(2)]), ([2], [None]))
rows("size rank", lambda f, p: f(p.u(2, 3)), [])
row("broadcast_dynamic_shape", lambda p: tn.broadcast_dynamic_shape(p.i(2), p.i(3)), [3])
row("broadcast_dynamic_shape", lambda p: tn.broadcast_dynamic_shape(p.i(None), p.i(3)), [None])
row("fill", lambda p: tn.fill([p.n(2), 3], 1.0), [None, 3])
row("fill", lambda p: tn.fill(p.v([2, 3], [2]), 1.0), [None, None])
row("fill", lambda p: tn.fill(tn.shape(p.f(None, 3)), 1.0), [None, 3])
rows("zeros ones", lambda f, p: f([2, 3]), [2, 3])
rows("zeros ones", lambda f, p: f([p.n(2), 3]), [None, 3])
rows("zeros ones", lambda f, p: f(tn.shape(p.f(None, 3))), [None, 3])
rows("zeros ones", lambda f, p: f(p.v([2, 3])), ANY)
rows("zeros ones", lambda f, p: f([]), [])
row("range", lambda p: tn.range(2, 9, 3), [3])
row("range", lambda p: tn.range(p.n(3)), [None])
row("lin_space", lambda p: tn.lin_space(0.0, 1.0, 5), [5])
row("lin_space", lambda p: tn.lin_space(0.0, 1.0, p.n(5)), [None])
row("one_hot", lambda p: tn.one_hot(p.i(None), 5), [None, 5])
row("one_hot", lambda p: tn.one_hot(p.i(None, 3), 5, axis=1), [None, 5, 3])
row("one_hot", lambda p: tn.one_hot(p.i(None), p.n(5)), [None, None])
row("one_hot", lambda p: tn.one_hot(p.of(tn.int32, None, (2,)), 5), ANY)
row("eye", lambda p: tn.eye(3), [3, 3])
row("eye", lambda p: tn.eye(3, 4, [2]), [2, 3, 4])
row("eye", lambda p: tn.eye(p.n(3)), [None, None])
row("sequence_mask", lambda p: tn.sequence_mask(p.i(None), 7), [None, 7])
row("sequence_mask", lambda p: tn.sequence_mask(p.i(3), 7, tn.float32), [3, 7])
row("sequence_mask", lambda p: tn.sequence_mask(p.i(3)), [3, None])
row("sequence_mask", lambda p: tn.sequence_mask(p.i(None, 2), p.n(3)), [None, 2, None])

# --- Other shapes over the same elements
row("reshape", lambda p: tn.reshape(p.f(None, 4), [-1, 2]), [None, 2])
row("reshape", lambda p: tn.reshape(p.f(6, 4), [-1, 2]), [12, 2])
row("reshape", lambda p: tn.reshape(p.u(2, 4), [-1, 2]), [None, 2])
row("reshape", lambda p: tn.reshape(p.f(None, 4), p.v([4, -1], [2])), [None, None])
row("reshape", lambda p: tn.reshape(p.f(None, 4), p.v([4, -1])), ANY)
row("reshape", lambda p: tn.reshape(p.f(8, 4), [p.n(2), -1, 4]), [None, None, 4])
row("reshape", lambda p: tn.reshape(p.f(None, 4), [tn.shape(p.f(None))[0], 4]), [None, 4])
row("reshape", lambda p: tn.reshape(p.f(1, 1), []), [])
row("expand_dims", lambda p: tn.expand_dims(p.f(None, 3), 1), [None, 1, 3])
row("expand_dims", lambda p: tn.expand_dims(p.f(None, 3), -1), [None, 3, 1])
row("expand_dims", lambda p: tn.expand_dims(p.f(None, 3), p.n(1)), [None, None, None])
row("expand_dims", lambda p: tn.expand_dims(p.u(2), 0), ANY)
row("squeeze", lambda p: tn.squeeze(p.f(None, 1, 3), [1]), [None, 3])
row("squeeze", lambda p: tn.squeeze(p.f(2, 1, 3)), [2, 3])
row("squeeze", lambda p: tn.squeeze(p.f(None, 1, 3)), ANY)
row("broadcast_to", lambda p: tn.broadcast_to(p.f(None, 1), [2, 3]), [2, 3])
row("broadcast_to", lambda p: tn.broadcast_to(p.f(3), [p.n(2), 3]), [None, 3])
row("broadcast_to", lambda p: tn.broadcast_to(p.u(3), p.v([2, 3], [2])), [None, None])

# --- Joining and parting
row("concat", lambda p: tn.concat([p.f(None, 3), p.f(None, 4)], 1), [None, 7])
row("concat", lambda p: tn.concat([p.f(None, 3), p.f(5, 3)], 0), [None, 3])
row("concat", lambda p: tn.concat([p.f(None, 3), p.f(2, None)], 1), [2, None])
row("concat", lambda p: tn.concat([p.f(None, 3), p.u(2, 3)], 0), [None, 3])
row("concat", lambda p: tn.concat([p.f(None, 3), p.f(2, 3)], p.n(0)), [None, None])
row("stack", lambda p: tn.stack([p.f(None, 3), p.of(tn.float32, [2, None], (2, 3))], 1), [2, 2, 3])
row("stack", lambda p: tn.stack([p.f(None), p.u(2)]), [2, None])
row("unstack", lambda p: tn.unstack(p.f(None, 2, 3), axis=1), ([None, 3], [None, 3]))
row("unstack", lambda p: tn.unstack(p.u(2, 3), 2), (ANY, ANY))
row("split", lambda p: tn.split(p.f(None, 6), 2, 1), ([None, 3], [None, 3]))
row("split", lambda p: tn.split(p.f(None, 6), 2), ([None, 6], [None, 6]))
row("split", lambda p: tn.split(p.f(None, 6), [1, -1], 1), ([None, 1], [None, 5]))
row("split", lambda p: tn.split(p.f(None, 6), p.v([2, 4], [2]), 1), ([None, None], [None, None]))
row("split", lambda p: tn.split(p.f(2, 6), 2, p.n(1)), ([None, None], [None, None]))
row("tile", lambda p: tn.tile(p.f(None, 3), [2, 2]), [None, 6])
row("tile", lambda p: tn.tile(p.f(4, 3), [p.n(2), 2]), [None, 6])
row("tile", lambda p: tn.tile(p.u(2, 3), [2, 2]), [None, None])
row("tile", lambda p: tn.tile(p.f(None, 3), p.v([2, 2])), [None, None])
row("repeat", lambda p: tn.repeat(p.f(3), 2), [6])
row("repeat", lambda p: tn.repeat(p.f(None, 3), 2, 1), [None, None])

# --- Rearranging
row("transpose", lambda p: tn.transpose(p.f(None, 3)), [3, None])
row("transpose", lambda p: tn.transpose(p.f(None, 3, 4), [1, 2, 0]), [3, 4, None])
row("transpose", lambda p: tn.transpose(p.f(None, 3), p.v([1, 0], [2])), [None, None])
row("transpose", lambda p: tn.transpose(p.u(2, 3), [1, 0]), [None, None])
row("matrix_transpose", lambda p: tn.matrix_transpose(p.f(None, 3, 4)), [None, 4, 3])
row("pad", lambda p: tn.pad(p.f(None, 3), [[1, 1], [0, 2]]), [None, 5])
row("pad", lambda p: tn.pad(p.f(4, 3), [[1, 1], [0, 2]], "REFLECT"), [6, 5])
row("pad", lambda p: tn.pad(p.f(4, 3), p.of(tn.int32, [2, 2])), [None, None])
row("pad", lambda p: tn.pad(p.u(4, 3), [[1, 1], [0, 2]]), [None, None])
row("slice", lambda p: tn.slice(p.f(None, 5), [0, 1], [-1, 3]), [None, 3])
row("slice", lambda p: tn.slice(p.f(4, 5), [1, 1], [-1, -1]), [3, 4])
row("slice", lambda p: tn.slice(p.f(4, 5), [0, p.n(1)], [2, -1]), [2, None])
row("slice", lambda p: tn.slice(p.f(4, 5), [0, p.n(1)], [p.n(2), 3]), [None, 3])
row("slice", lambda p: tn.slice(p.u(4, 5), p.v([0, 1], [2]), [2, 3]), [2, 3])
row("strided_slice", lambda p: tn.strided_slice(p.f(None, 6), [0, 1], [1, 5], [1, 2]), [None, 2])
row("strided_slice", lambda p: p.f(None, 6)[:, 1:4], [None, 3])
row("strided_slice", lambda p: p.f(None, 6)[0], [6])
row("strided_slice", lambda p: p.f(None, 6)[..., tn.newaxis, ::2], [None, 1, 3])
row("strided_slice", lambda p: p.f(4, 6)[:p.n(2), ::-1], [None, 6])
row("strided_slice", lambda p: p.u(4, 6)[0], ANY)
row("meshgrid", lambda p: tn.meshgrid(p.f(2), p.f(3)), ([3, 2], [3, 2]))
row("meshgrid", lambda p: tn.meshgrid(p.f(None), p.f(3), indexing="ij"), ([None, 3], [None, 3]))
row("space_to_batch_nd", lambda p: tn.space_to_batch_nd(p.f(2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]),
    [12, 2, 2, 3])
row("space_to_batch_nd", lambda p: tn.space_to_batch_nd(p.f(2, 4, 6, 3), [2, 3],
                                                        p.v([[0, 0], [0, 0]], [2, 2])),
    [12, None, None, 3])
row("batch_to_space_nd", lambda p: tn.batch_to_space_nd(p.f(12, 2, 2, 3), [2, 3], [[0, 0], [1, 0]]),
    [2, 4, 5, 3])
row("batch_to_space_nd", lambda p: tn.batch_to_space_nd(p.of(tn.float32, [None, 2, None, 3],
                                                             (12, 2, 2, 3)),
                                                        [2, 3], p.v([[0, 0], [1, 0]], [2, 2])),
    [None, None, None, 3])
row("space_to_batch", lambda p: tn.space_to_batch(p.f(None, 4, 6, 3), [[0, 0], [0, 0]], 2),
    [None, 2, 3, 3])
row("batch_to_space", lambda p: tn.batch_to_space(p.f(8, 4, 6, 3), [[0, 0], [0, 0]], 2),
    [2, 8, 12, 3])
row("space_to_depth", lambda p: tn.space_to_depth(p.f(None, 4, None, 3), 2), [None, 2, None, 12])
row("depth_to_space", lambda p: tn.depth_to_space(p.f(None, 4, None, 12), 2), [None, 8, None, 3])
row("depth_to_space", lambda p: tn.depth_to_space(p.f(None, 12, 2, 3), 2, data_format="NCHW"),
    [None, 3, 4, 6])

# --- Choosing
row("gather", lambda p: tn.gather(p.f(None, 3), p.i(4, None)), [4, None, 3])
row("gather", lambda p: tn.gather(p.f(None, 3), p.i(5), axis=1), [None, 5])
row("gather", lambda p: tn.gather(p.f(None, 3), p.n(0)), [3])
row("gather", lambda p: tn.gather(p.f(2, 3), p.i(5), axis=p.n(0)), [None, None])
row("gather", lambda p: tn.gather(p.f(None, 3, 4), p.i(None, 5), axis=1, batch_dims=1),
    [None, 5, 4])
row("gather_nd", lambda p: tn.gather_nd(p.f(2, 3, 4), p.of(tn.int32, [None, 2])), [None, 4])
row("gather_nd", lambda p: tn.gather_nd(p.f(None, 3), p.of(tn.int32, [5, 2])), [5])
row("gather_nd", lambda p: tn.gather_nd(p.u(2, 3), p.of(tn.int32, [5, 2])), ANY)
row("scatter_nd", lambda p: tn.scatter_nd([[1]], p.f(1, 3), [4, 3]), [4, 3])
row("scatter_nd", lambda p: tn.scatter_nd([[1]], p.f(1, 3), [p.n(4), 3]), [None, 3])
row("boolean_mask", lambda p: tn.boolean_mask(p.f(None, 3), p.b(None)), [None, 3])
row("boolean_mask", lambda p: tn.boolean_mask(p.f(None, 3, 4), p.b(None, 3)), [None, 4])
row("boolean_mask", lambda p: tn.boolean_mask(p.f(None, 3, 4), p.b(3), axis=1), [None, None, 4])
row("where", lambda p: tn.where(p.b(None, 3)), [None, 2])
row("where", lambda p: tn.where(p.of(tn.bool, None, (2, 3))), [None, None])
row("where", lambda p: tn.where(p.b(None, 3), p.f(None, 3), p.f(2, 3)), [2, 3])
row("where", lambda p: tn.where(p.b(None), p.f(None, 3), p.f(None, 3)), [None, 3])
row("where", lambda p: tn.where(p.of(tn.bool, None, ()), p.f(None, 3), p.f(None, 3)), [None, 3])
row("where", lambda p: tn.where(p.of(tn.bool, None, ()), p.f(2, 3), p.f(2, 3)), [2, 3])
row("dynamic_partition", lambda p: tn.dynamic_partition(p.f(None, 3), p.i(None), 2),
    ([None, 3], [None, 3]))
row("dynamic_stitch", lambda p: tn.dynamic_stitch([[0, 2], [1]], [p.f(2, 3), p.f(1, 3)]), [3, 3])
row("dynamic_stitch", lambda p: tn.dynamic_stitch([p.v([0, 1], [2])], [p.f(2, 3)]), [None, 3])
row("unique", lambda p: tn.unique(p.f(5)), ([None], [5]))
row("setdiff1d", lambda p: tn.setdiff1d(p.f(5), p.f(2)), ([None], [None]))
row("diag", lambda p: tn.diag(p.f(None, 3)), [None, 3, None, 3])
row("diag_part", lambda p: tn.diag_part(p.f(None, 3, None, 3)), [None, 3])
row("nth_element", lambda p: tn.nth_element(p.f(None, 5), 2), [None])
for name in "scatter_add", "scatter_sub", "scatter_mul", "scatter_max", "scatter_min", \
        "scatter_update":
    rows(name, lambda f, p: f(tn.Variable(tn.zeros([4, 3])), [1], p.f(1, 3)), [4, 3])
rows("assign assign_add assign_sub", lambda f, p: f(tn.Variable(tn.zeros([4, 3])), p.f(4, 3)),
     [4, 3])
row("count_up_to", lambda p: tn.count_up_to(tn.Variable(1), 5), [])
row("get_variable", lambda p: tn.identity(tn.get_variable("v", [2, 3])), [2, 3])
row("get_local_variable", lambda p: tn.identity(tn.get_local_variable("l", [2, 3])), [2, 3])
row("is_variable_initialized", lambda p: tn.is_variable_initialized(tn.Variable(1.0)), [])
row("report_uninitialized_variables",
    lambda p: tn.report_uninitialized_variables([tn.Variable(1.0)]), [None])

# --- Random numbers
rows("random_normal truncated_normal random_uniform", lambda f, p: f([2, 3]), [2, 3])
rows("random_normal truncated_normal random_uniform", lambda f, p: f([p.n(2), 3]), [None, 3])
rows("random_normal truncated_normal random_uniform", lambda f, p: f(tn.shape(p.f(None, 3))),
     [None, 3])
rows("random_normal truncated_normal random_uniform", lambda f, p: f(p.v([2, 3], [2])),
     [None, None])
rows("stateless_random_normal stateless_truncated_normal stateless_random_uniform",
     lambda f, p: f([p.n(2), 3], [1, 2]), [None, 3])
row("random_shuffle", lambda p: tn.random_shuffle(p.f(None, 3)), [None, 3])
row("multinomial", lambda p: tn.multinomial(p.f(None, 3), 5), [None, 5])
row("multinomial", lambda p: tn.multinomial(p.f(4, 3), p.n(5)), [4, None])
row("random_crop", lambda p: tn.random_crop(p.f(None, 6, 3), [2, 4, 3]), [2, 4, 3])
row("initializers.he_normal", lambda p: tn.initializers.he_normal()([3, 4]), [3, 4])
row("initializers.he_uniform", lambda p: tn.initializers.he_uniform()([3, 4]), [3, 4])
row("initializers.lecun_normal", lambda p: tn.initializers.lecun_normal()([3, 4]), [3, 4])
row("initializers.lecun_uniform", lambda p: tn.initializers.lecun_uniform()([3, 4]), [3, 4])

# --- Strings
row("as_string", lambda p: tn.as_string(p.f(None, 3)), [None, 3])
row("string_join", lambda p: tn.string_join([p.s(None, 3), p.s(), p.s(2, 3)]), [2, 3])
row("reduce_join", lambda p: tn.reduce_join(p.s(None, 3), 1), [None])
row("reduce_join", lambda p: tn.reduce_join(p.s(None, 3), 1, keep_dims=True), [None, 1])
row("regex_replace", lambda p: tn.regex_replace(p.s(None, 3), "a", "b"), [None, 3])
row("string_split", lambda p: tn.string_split(p.s(4)), ([None, 2], [None], [2]))
rows("string_to_hash_bucket string_to_hash_bucket_fast", lambda f, p: f(p.s(None, 3), 10),
     [None, 3])
row("string_to_hash_bucket_strong",
    lambda p: tn.string_to_hash_bucket_strong(p.s(None, 3), 10, [1, 2]), [None, 3])
row("string_to_number", lambda p: tn.string_to_number(p.s(None, 3)), [None, 3])
row("substr", lambda p: tn.substr(p.s(None, 3), 0, 1), [None, 3])
rows("strings.length strings.lower strings.upper strings.strip", lambda f, p: f(p.s(None, 3)),
     [None, 3])
row("strings.regex_full_match", lambda p: tn.strings.regex_full_match(p.s(None, 3), "a"), [None, 3])
row("strings.split", lambda p: tn.strings.split(p.s(4)), ([None, 2], [None], [2]))

# --- Sparse tensors
row("sparse_to_dense", lambda p: tn.sparse_to_dense([[1]], [4], p.f(1)), [4])
row("sparse_to_dense", lambda p: tn.sparse_to_dense([[1, 1]], p.v([4, 5], [2]), p.f(1)),
    [None, None])
row("sparse_tensor_to_dense",
    lambda p: tn.sparse_tensor_to_dense(tn.SparseTensor([[1, 2]], p.f(1), [4, 5])), [4, 5])
row("edit_distance", lambda p: tn.edit_distance(*[tn.SparseTensor(
    np.array([[0, 0]]), tn.constant([1]), [1, 2]) for _ in range(2)]), [1])

# --- Loops over rows
row("map_fn", lambda p: tn.map_fn(lambda row: row * 2.0, p.f(None, 3)), [None, 3])
row("map_fn", lambda p: tn.map_fn(lambda row: row * 2.0, p.f(4, 3)), [4, 3])
row("map_fn", lambda p: tn.map_fn(lambda rows: (rows[0][0], rows[1]), (p.f(None, 3), p.i(2))),
    ([2], [2]))
row("map_fn", lambda p: tn.map_fn(tn.size, p.f(None, 3), dtype=tn.int32), [None])
row("map_fn", lambda p: tn.map_fn(lambda row: row, p.u(2, 3)), ANY)
rows("foldl foldr", lambda f, p: f(lambda total, row: total + row, p.f(None, 3)), [3])
rows("foldl foldr",
     lambda f, p: f(lambda total, row: total + row[0], p.f(None, 3), p.f()), [])
row("scan", lambda p: tn.scan(lambda total, row: total + row, p.f(None, 3)), [None, 3])
row("scan", lambda p: tn.scan(lambda total, row: total + row[0], p.f(4, 3), p.f(), reverse=True),
    [4])

excuse("add_to_collection add_to_collections all_variables as_dtype broadcast_static_shape "
       "build_info colocate_with container control_dependencies device executing_eagerly "
       "get_collection get_collection_ref get_default_graph get_default_session get_seed "
       "get_variable_scope global_variables_initializer group import_graph initialize_variables "
       "is_tensor load_graph load_op_library load_pluggable_device_library local_variables "
       "local_variables_initializer model_variables moving_average_variables no_op "
       "reset_default_graph set_random_seed tables_initializer trainable_variables NoGradient",
       "gives no tensor")
excuse("execute make_template cond case switch_case while_loop",
       "gives what the op or function it is given gives")
rows("scatter_nd_add scatter_nd_sub scatter_nd_update",
     lambda f, p: f(tn.Variable(tn.zeros([4, 3])), p.i(None, 1), p.f(None, 3)), [4, 3])
excuse("no_regularizer", "gives None")
excuse("eager enable_eager_execution", "how operations run")
excuse("function", "gives what the function it is given gives")
excuse("gradients_function value_and_gradients_function implicit_gradients "
       "implicit_value_and_gradients", "give functions")
excuse("lookup.index_table_from_file lookup.index_table_from_tensor "
       "lookup.index_to_string_table_from_file lookup.index_to_string_table_from_tensor",
       "gives a table")
excuse("from_dlpack", "gives a concrete tensor, whose shape is the array's")
excuse("fixed_size_partitioner min_max_variable_partitioner variable_axis_size_partitioner",
       "gives a partitioner")
excuse("sparse_placeholder", "its parts are placeholders: a run feeds them together")
