# SPDX-License-Identifier: Apache-2.0
"""Static shapes of arithmetic, reductions, products, segments, clips and losses
(tensorflow/core/ops/math_ops.cc, python/ops/math_ops.py, python/ops/losses/losses_impl.py)."""

import treenail as tn
from static_shapes import ANY, excuse, row, rows

UNARY = ("abs neg sign sqrt square sigmoid tanh log_sigmoid real math.acos math.acosh math.asin "
         "math.asinh math.atan math.atanh math.ceil math.cos math.cosh math.erf math.erfc math.exp "
         "math.expm1 math.floor math.is_finite math.is_inf math.is_nan math.log math.log1p "
         "math.reciprocal math.rint math.round math.rsqrt math.sin math.sinh math.tan to_bfloat16 "
         "to_double to_float to_int32 to_int64")
rows(UNARY, lambda f, p: f(p.f(None, 3)), [None, 3])
rows(UNARY, lambda f, p: f(p.u(2, 3)), ANY)
rows("angle conj imag real to_complex64 to_complex128 abs", lambda f, p: f(p.c(None, 3)), [None, 3])
rows("angle imag conj", lambda f, p: f(p.f(None, 3)), [None, 3])
row("cast", lambda p: tn.cast(p.f(None, 3), tn.int64), [None, 3])
row("saturate_cast", lambda p: tn.saturate_cast(p.f(None, 3), tn.uint8), [None, 3])
row("math.logical_not", lambda p: tn.logical_not(p.b(None, 3)), [None, 3])

BINARY = ("math.add sub mul div divide realdiv truncatediv truncatemod floor_div floormod pow "
          "math.maximum math.minimum math.squared_difference math.equal math.not_equal math.less "
          "math.less_equal math.greater math.greater_equal")
rows(BINARY, lambda f, p: f(p.i(None, 3), p.i(3)) if f is tn.truncatediv
     else f(p.f(None, 3), p.f(3)), [None, 3])
REAL_BINARY = (BINARY.replace("truncatediv ", "")
               + " math.atan2 div_no_nan multiply_no_nan math.xdivy math.xlogy")
rows(REAL_BINARY, lambda f, p: f(p.f(None, 1), p.f(2, 3)), [2, 3])
rows(REAL_BINARY, lambda f, p: f(p.of(tn.float32, [None, 1], (3, 1)), p.f(3, None)), [3, None])
rows(REAL_BINARY, lambda f, p: f(p.f(None, 3), p.f(None, 1)), [None, 3])
rows(REAL_BINARY, lambda f, p: f(p.f(None, 3), p.f(1, 1, 1)), [1, None, 3])
rows(REAL_BINARY, lambda f, p: f(p.f(None, 3), 2.0), [None, 3])
rows(REAL_BINARY, lambda f, p: f(p.f(None, 3), p.u()), ANY)
rows("math.logical_and math.logical_or logical_xor", lambda f, p: f(p.b(None, 3), p.b(1, 3)),
     [None, 3])
SPECIAL = ("math.lgamma math.digamma math.erfinv math.ndtri math.bessel_i0 math.bessel_i0e "
           "math.bessel_i1 math.bessel_i1e")
rows(SPECIAL, lambda f, p: f(p.f(None, 3)), [None, 3])
rows("math.zeta math.polygamma math.igamma math.igammac",
     lambda f, p: f(p.f(None, 1), p.f(2, 3)), [2, 3])
row("math.betainc", lambda p: tn.betainc(p.f(None, 1), p.f(3), p.f(2, 1)), [2, 3])
row("math.lbeta", lambda p: tn.lbeta(p.f(None, 3)), [None])
rows("bitwise.bitwise_and bitwise.bitwise_or bitwise.bitwise_xor bitwise.left_shift "
     "bitwise.right_shift", lambda f, p: f(p.i(None, 3), p.i(3)), [None, 3])
row("bitwise.invert", lambda p: tn.bitwise.invert(p.i(None, 3)), [None, 3])
row("math.nextafter", lambda p: tn.math.nextafter(p.f(None, 1), p.f(2, 3)), [2, 3])
row("ensure_shape", lambda p: tn.ensure_shape(p.f(None, 3), [2, None]), [2, 3])
row("ensure_shape", lambda p: tn.ensure_shape(p.u(2, 3), [None, 3]), [None, 3])
row("complex", lambda p: tn.complex(p.f(None, 3), p.f(2, 3)), [2, 3])
row("add_n", lambda p: tn.add_n([p.f(None, 3), p.of(tn.float32, [2, None], (2, 3))]), [2, 3])
row("accumulate_n", lambda p: tn.accumulate_n([p.f(None, 3), p.f(None, 3)]), [None, 3])
row("scalar_mul", lambda p: tn.scalar_mul(2.0, p.f(None, 3)), [None, 3])

# --- Reductions
SUMS = ("reduce_sum reduce_mean reduce_prod reduce_max reduce_min reduce_euclidean_norm "
        "reduce_variance reduce_std reduce_logsumexp count_nonzero")
for names, of in ((SUMS, "f"), ("reduce_all reduce_any", "b")):
    rows(names, lambda f, p, of=of: f(getattr(p, of)(None, 3, 4), 1), [None, 4])
    rows(names, lambda f, p, of=of: f(getattr(p, of)(None, 3, 4), [0, -1]), [3])
    rows(names, lambda f, p, of=of: f(getattr(p, of)(None, 3, 4), 1, True), [None, 1, 4])
    rows(names, lambda f, p, of=of: f(getattr(p, of)(None, 3)), [])
    rows(names, lambda f, p, of=of: f(getattr(p, of)(None, 3), keepdims=True), [1, 1])
    rows(names, lambda f, p, of=of: f(getattr(p, of)(None, 3), p.n(0)), ANY)
    rows(names, lambda f, p, of=of: f(getattr(p, of)(None, 3), p.n(0), True), [None, None])
rows(SUMS, lambda f, p: f(p.u(2, 3)), [])
rows("reduce_all reduce_any", lambda f, p: f(p.of(tn.bool, None, (2, 3))), [])
rows(SUMS, lambda f, p: f(p.u(2, 3), keepdims=True), ANY)
rows(SUMS, lambda f, p: f(p.u(2, 3), 1), ANY)
rows("arg_max arg_min", lambda f, p: f(p.f(None, 3, 4), 1), [None, 4])
rows("arg_max arg_min", lambda f, p: f(p.f(None, 3, 4), p.n(1)), [None, None])
rows("cumsum cumprod", lambda f, p: f(p.f(None, 3), 1), [None, 3])
rows("cumsum cumprod", lambda f, p: f(p.f(None, 3), p.n(1)), [None, 3])
row("math.cumulative_logsumexp", lambda p: tn.math.cumulative_logsumexp(p.f(None, 3), 1), [None, 3])
row("bincount", lambda p: tn.bincount(p.i(5)), [None])
row("histogram_fixed_width", lambda p: tn.histogram_fixed_width(p.f(None, 3), [0.0, 5.0], 7), [7])
row("histogram_fixed_width_bins",
    lambda p: tn.histogram_fixed_width_bins(p.f(None, 3), [0.0, 5.0], 7), [None, 3])
row("confusion_matrix", lambda p: tn.confusion_matrix(p.i(None), p.i(None), 4), [4, 4])
row("trace", lambda p: tn.trace(p.f(None, 3, 3)), [None])

# --- Products
row("matmul", lambda p: tn.matmul(p.f(None, 3), p.f(3, 4)), [None, 4])
row("matmul", lambda p: tn.matmul(p.f(3, None), p.f(3, 4), transpose_a=True), [None, 4])
row("matmul", lambda p: tn.matmul(p.f(None, 2, 3), p.f(None, 3, 4)), [None, 2, 4])
row("matmul", lambda p: tn.matmul(p.f(None, 2, 3), p.f(2, 4, 3), transpose_b=True), [2, 2, 4])
row("matmul", lambda p: tn.matmul(p.u(2, 3), p.f(3, 4)), ANY)
row("matmul", lambda p: tn.matmul(p.f(None, 3), p.u(4, 3), transpose_b=True), ANY)
row("matmul", lambda p: tn.matmul(p.u(2, 3), p.u(3, 4)), ANY)
row("matmul", lambda p: tn.matmul(p.f(None, 2, 3), p.u(2, 3, 4)), ANY)
row("sparse_matmul", lambda p: tn.sparse_matmul(p.f(None, 3), p.f(3, 4)), [None, 4])
row("matvec", lambda p: tn.matvec(p.f(None, 3), p.f(3)), [None])
row("tensordot", lambda p: tn.tensordot(p.f(None, 3, 4), p.f(4, 5), 1), [None, 3, 5])
row("tensordot", lambda p: tn.tensordot(p.f(None, 3, 4), p.f(4, None), [[2], [0]]),
    [None, 3, None])
row("tensordot", lambda p: tn.tensordot(p.f(None, 3, 4), p.f(None, 4, 5), [[0, 2], [0, 1]]), [3, 5])
row("tensordot", lambda p: tn.tensordot(p.u(2, 3), p.f(3, 4), 1), ANY)
row("einsum", lambda p: tn.einsum("ij,jk->ik", p.f(None, 3), p.f(3, 4)), [None, 4])
row("einsum", lambda p: tn.einsum("...ij,...jk", p.f(None, 1, 2, 3), p.f(5, 3, 4)), [None, 5, 2, 4])
row("einsum", lambda p: tn.einsum("ij,jk->ki", p.u(2, 3), p.f(3, 4)), [4, None])
row("einsum", lambda p: tn.einsum("ii->i", p.f(None, 2)), [2])
row("einsum", lambda p: tn.einsum("...i->...", p.u(2, 3)), ANY)
row("einsum", lambda p: tn.einsum("bij,bjk->bik", p.f(None, 2, 3), p.f(None, 3, 4)), [None, 2, 4])
row("math.invert_permutation", lambda p: tn.invert_permutation(p.v([0, 1], [2])), [2])

# --- Segments
SEGMENTS = "math.segment_sum math.segment_mean math.segment_prod math.segment_max math.segment_min"
rows(SEGMENTS, lambda f, p: f(p.f(None, 3), p.i(None)), [None, 3])
UNSORTED = "math.unsorted_segment_sum math.unsorted_segment_prod math.unsorted_segment_max " \
           "math.unsorted_segment_min"
rows(UNSORTED, lambda f, p: f(p.f(None, 3), p.i(None), 4), [4, 3])
rows(UNSORTED, lambda f, p: f(p.f(2, 5, 3), p.i(2, 5), p.n(4)), [None, 3])

# --- Clips
row("clip_by_value", lambda p: tn.clip_by_value(p.f(None, 3), -1.0, 1.0), [None, 3])
row("clip_by_value", lambda p: tn.clip_by_value(p.f(None, 3), p.u(), p.u()), [None, 3])
row("clip_by_norm", lambda p: tn.clip_by_norm(p.f(None, 3), 1.0), [None, 3])
row("clip_by_norm", lambda p: tn.clip_by_norm(p.f(None, 3), p.u(), 1), ANY)
row("clip_by_average_norm", lambda p: tn.clip_by_average_norm(p.f(None, 3), 1.0), [None, 3])
row("clip_by_global_norm", lambda p: tn.clip_by_global_norm([p.f(None, 3), p.f(4)], 1.0),
    ([None, 3], [4], []))
row("clip_by_global_norm", lambda p: tn.clip_by_global_norm([p.f(None, 3), p.f(4)], p.u()),
    ([None, 3], [4], []))
row("global_norm", lambda p: tn.global_norm([p.f(None, 3), p.f(4)]), [])

# --- Gradients


def gradient(p):
    x = p.f(None, 3)
    return tn.gradients(tn.matmul(x, tn.ones([3, 4])), x)


row("gradients", gradient, [None, 3])


def hessian(p):
    x = p.f(3)
    return tn.hessians(tn.reduce_sum(x ** 3), x)


row("hessians", hessian, [3, 3])


def derivative(of):
    def build(p):
        x = p.f(2, 3)
        return of(tn.matmul(x, tn.ones([3, 4])), x)
    return build


row("jacobian", derivative(tn.jacobian), [2, 4, 2, 3])
row("batch_jacobian", derivative(tn.batch_jacobian), [2, 4, 3])
row("hessian_vector_product", derivative(
    lambda y, x: tn.hessian_vector_product(y * y, x, tn.ones([2, 3]))), [2, 3])
row("jacobian_vector_product", derivative(
    lambda y, x: tn.jacobian_vector_product(y, x, tn.ones([2, 3]))), [2, 4])
excuse("custom_gradient recompute_grad", "gives a function")
excuse("test.compute_gradient test.compute_gradient_error", "gives arrays")
excuse("test.create_local_cluster", "gives servers")

# --- Losses
PAIRS = ("losses.absolute_difference losses.huber_loss losses.log_loss losses.mean_squared_error "
         "losses.hinge_loss losses.mean_pairwise_squared_error losses.sigmoid_cross_entropy "
         "losses.softmax_cross_entropy")
rows(PAIRS, lambda f, p: f(p.f(None, 3), p.f(None, 3)), [])
NONE = tn.losses.Reduction.NONE
rows("losses.absolute_difference losses.huber_loss losses.log_loss losses.mean_squared_error "
     "losses.hinge_loss losses.sigmoid_cross_entropy",
     lambda f, p: f(p.f(None, 3), p.f(None, 3), reduction=NONE), [None, 3])
row("losses.softmax_cross_entropy",
    lambda p: tn.losses.softmax_cross_entropy(p.f(None, 3), p.f(None, 3), reduction=NONE), [None])
row("losses.sparse_softmax_cross_entropy",
    lambda p: tn.losses.sparse_softmax_cross_entropy(p.i(None), p.f(None, 3)), [])
row("losses.sparse_softmax_cross_entropy",
    lambda p: tn.losses.sparse_softmax_cross_entropy(p.i(None), p.f(None, 3), reduction=NONE),
    [None])
row("losses.cosine_distance", lambda p: tn.losses.cosine_distance(p.f(None, 3), p.f(None, 3), 1),
    [])
row("losses.cosine_distance", lambda p: tn.losses.cosine_distance(p.f(None, 3), p.f(None, 3), 1,
                                                                  reduction=NONE), [None, 1])
row("losses.compute_weighted_loss",
    lambda p: tn.losses.compute_weighted_loss(p.f(None, 3), 2.0), [])
row("losses.get_total_loss", lambda p: (tn.losses.mean_squared_error(p.f(3), p.f(3)),
                                        tn.losses.get_total_loss())[1], [])
row("losses.get_regularization_loss", lambda p: tn.losses.get_regularization_loss(), [])
rows("regularizers.l1 regularizers.l2", lambda f, p: f(0.1)(p.f(None, 3)), [])
row("regularizers.l1_l2", lambda p: tn.regularizers.l1_l2(0.1, 0.1)(p.f(None, 3)), [])
row("regularizers.sum_regularizer",
    lambda p: tn.regularizers.sum_regularizer([tn.regularizers.l2(0.1)])(p.f(None, 3)), [])
row("regularizers.apply_regularization",
    lambda p: tn.regularizers.apply_regularization(tn.regularizers.l2(0.1), [p.f(None, 3)]), [])
excuse("losses.add_loss losses.get_losses losses.get_regularization_losses", "gives no new tensor")

rows("py_func numpy_function", lambda f, p: f(abs, [p.f(None, 3)], tn.float32), ANY)
row("Print", lambda p: tn.Print(p.f(None, 3), []), [None, 3])
row("assert_scalar", lambda p: tn.assert_scalar(p.u()), ANY)
rows("is_non_decreasing is_strictly_increasing", lambda f, p: f(p.f(None, 3)), [])
excuse("Assert assert_equal assert_greater assert_greater_equal assert_integer assert_less "
       "assert_less_equal assert_near assert_negative assert_non_negative assert_non_positive "
       "assert_none_equal assert_positive assert_proper_iterable assert_rank assert_rank_at_least "
       "assert_rank_in assert_same_float_dtype assert_type assert_variables_initialized "
       "is_numeric_tensor", "gives no tensor")

# --- Training
STEP = "train.exponential_decay train.inverse_time_decay train.natural_exp_decay"
rows(STEP, lambda f, p: f(0.1, p.n(3), 10, 0.9), [])
row("train.cosine_decay", lambda p: tn.train.cosine_decay(0.1, p.n(3), 10), [])
row("train.polynomial_decay", lambda p: tn.train.polynomial_decay(0.1, p.n(3), 10), [])
row("train.piecewise_constant",
    lambda p: tn.train.piecewise_constant(p.n(3), [1, 5], [0.1, 0.2, 0.3]), [])
rows("train.create_global_step train.get_or_create_global_step", lambda f, p: tn.identity(f()), [])
row("train.get_global_step", lambda p: tn.identity((tn.train.create_global_step(),
                                                    tn.train.get_global_step())[1]), [])
excuse("train.add_queue_runner train.assert_global_step train.checkpoint_exists "
       "train.get_checkpoint_mtimes train.get_checkpoint_state train.global_step "
       "train.latest_checkpoint train.list_variables train.load_checkpoint train.load_variable "
       "train.remove_checkpoint train.start_queue_runners train.update_checkpoint_state "
       "train.MonitoredTrainingSession train.byte_size_load_fn train.export_meta_graph "
       "train.import_meta_graph train.replica_device_setter",
       "gives no tensor")

# --- Input from queues. What they give waits for queue runners: it is not run here.
row("train.limit_epochs", lambda p: tn.train.limit_epochs(p.f(None, 3), 2), [None, 3])
row("train.slice_input_producer",
    lambda p: tn.train.slice_input_producer([p.f(None, 3), p.i(5)]), ([3], []), runs=False)
for name in "batch", "maybe_batch":
    rows("train." + name, lambda f, p: f([p.f(4, 3), p.i()], **(
        {"keep_input": p.of(tn.bool, [], ())} if f is tn.train.maybe_batch else {}), batch_size=5),
         ([5, 4, 3], [5]), runs=False)
row("train.batch", lambda p: tn.train.batch([p.f(4, 3)], p.n(5)), [None, 4, 3], runs=False)
row("train.batch", lambda p: tn.train.batch([p.f(None, 3)], 5, enqueue_many=True), [5, 3],
    runs=False)
row("train.batch", lambda p: tn.train.batch([p.f(None, 3)], 5, dynamic_pad=True), [5, None, 3],
    runs=False)
row("train.batch", lambda p: tn.train.batch([p.f(4)], 5, allow_smaller_final_batch=True),
    [None, 4], runs=False)
row("train.batch_join", lambda p: tn.train.batch_join([[p.f(4)], [p.f(None)]], 5), [5, 4],
    runs=False)
row("train.maybe_batch_join", lambda p: tn.train.maybe_batch_join([[p.f(4)]], True, 5), [5, 4],
    runs=False)
row("train.shuffle_batch", lambda p: tn.train.shuffle_batch([p.f(4)], 5, 9, 3), [5, 4], runs=False)
row("train.shuffle_batch_join", lambda p: tn.train.shuffle_batch_join([[p.f(4)]], 5, 9, 3), [5, 4],
    runs=False)
row("train.maybe_shuffle_batch",
    lambda p: tn.train.maybe_shuffle_batch([p.f(4)], 5, 9, 3, False), [5, 4], runs=False)
row("train.maybe_shuffle_batch_join",
    lambda p: tn.train.maybe_shuffle_batch_join([[p.f(4)]], 5, 9, 3, False), [5, 4], runs=False)
excuse("train.input_producer train.range_input_producer train.string_input_producer",
       "gives a queue")
