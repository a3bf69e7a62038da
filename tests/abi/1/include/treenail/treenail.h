/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Treenail's C ABI for programs: build a graph, differentiate it, run it; or execute single ops.
 * Plugins (ops and kernels in C) are plugin.h's concern. Over these two lie layers for C++17:
 * treenail.hpp for programs, op.hpp for plugins. There are no other installed headers.
 *
 * Rules that hold everywhere
 * - Handles are opaque. What a function called ..._new, ..._new_from, ..._borrow, ..._share,
 *   ..._reshape or ..._load returns belongs to the caller, and so do results of runs; each is ended
 *   with its ..._delete (NULL is allowed there). Other pointers that functions return
 *   belong to what they were asked of and live as long as it.
 * - A call that can fail takes a tn_status as its last argument and sets it, to TN_OK as well. When
 *   it failed, a pointer result is NULL and a number 0. The status may be NULL.
 * - Every struct begins with struct_size, which the caller sets to sizeof(the struct) (the ..._INIT
 *   macros do). Later versions add fields at the end; what an older caller does not give has its
 *   default.
 * - A shape is `dims` and `rank`; rank -1 is an unknown rank and an extent of -1 an unknown extent,
 *   where unknowns are allowed.
 * - No exception leaves the library. Bad input gives a status, never a crash; a pointer that does
 *   not come from this library, or is used after its deletion, cannot be checked.
 * - All functions may be called from any thread. One object may be used by several threads at once
 *   if all of them take it as pointer to const; graphs and sessions may always be shared.
 */
#ifndef TREENAIL_TREENAIL_H_
#define TREENAIL_TREENAIL_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif

#ifdef __cplusplus
#define TN_NOEXCEPT noexcept
extern "C" {
#else
#define TN_NOEXCEPT
#endif

/* ---- Version and build ---- */

/* "1.0.0" */
TN_API const char* tn_version(void) TN_NOEXCEPT;

typedef struct tn_build_info {
  size_t struct_size;
  const char* version;       /* "1.0.0" */
  const char* machine;       /* "x86_64" */
  const char* isa_baseline;  /* what the core library needs: "x86-64" */
  const char* kernel_levels; /* ISA levels built, lowest first, separated by spaces */
  const char* features;      /* optional parts built, separated by spaces */
  const char* build_type;    /* "release" */
} tn_build_info;
#define TN_BUILD_INFO_INIT \
  { sizeof(tn_build_info), NULL, NULL, NULL, NULL, NULL, NULL }

/* Fills in what info->struct_size covers. */
TN_API void tn_get_build_info(tn_build_info* info) TN_NOEXCEPT;

/* ---- Status ---- */

typedef int32_t tn_code; /* gRPC's canonical numbers */
enum {
  TN_OK = 0,
  TN_CANCELLED = 1,
  TN_UNKNOWN = 2,
  TN_INVALID_ARGUMENT = 3,
  TN_DEADLINE_EXCEEDED = 4,
  TN_NOT_FOUND = 5,
  TN_ALREADY_EXISTS = 6,
  TN_PERMISSION_DENIED = 7,
  TN_RESOURCE_EXHAUSTED = 8,
  TN_FAILED_PRECONDITION = 9,
  TN_ABORTED = 10,
  TN_OUT_OF_RANGE = 11,
  TN_UNIMPLEMENTED = 12,
  TN_INTERNAL = 13,
  TN_UNAVAILABLE = 14,
  TN_DATA_LOSS = 15,
  TN_UNAUTHENTICATED = 16
};

typedef struct tn_status tn_status;

TN_API tn_status* tn_status_new(void) TN_NOEXCEPT; /* NULL when out of memory */
TN_API void tn_status_delete(tn_status* status) TN_NOEXCEPT;
TN_API tn_code tn_status_code(const tn_status* status) TN_NOEXCEPT;
/* "" for TN_OK; valid until the status is set again. */
TN_API const char* tn_status_message(const tn_status* status) TN_NOEXCEPT;
TN_API void tn_status_set(tn_status* status, tn_code code, const char* message) TN_NOEXCEPT;
/* "InvalidArgument" */
TN_API const char* tn_code_name(tn_code code) TN_NOEXCEPT;

/* ---- Process-wide settings ---- */

/* The ISA level whose kernels this process uses ("x86-64-v3"); opens the kernel library. */
TN_API const char* tn_kernel_level(tn_status* status) TN_NOEXCEPT;

/* Threads that work on one op, the caller included. Results do not depend on it. */
TN_API int32_t tn_num_threads(void) TN_NOEXCEPT;
TN_API void tn_set_num_threads(int32_t threads, tn_status* status) TN_NOEXCEPT;

/* ---- Element types ---- */

typedef int32_t tn_dtype; /* TensorFlow's numbers */
enum {
  TN_FLOAT32 = 1,
  TN_FLOAT64 = 2,
  TN_INT32 = 3,
  TN_UINT8 = 4,
  TN_INT16 = 5,
  TN_INT8 = 6,
  TN_STRING = 7,
  TN_COMPLEX64 = 8,
  TN_INT64 = 9,
  TN_BOOL = 10, /* a byte other than 0 is true */
  TN_BFLOAT16 = 14,
  TN_UINT16 = 17,
  TN_COMPLEX128 = 18,
  TN_FLOAT16 = 19,
  TN_RESOURCE = 20,
  TN_VARIANT = 21,
  TN_UINT32 = 22,
  TN_UINT64 = 23
};

/* Bytes of one element; 0 for a number that is no dtype. */
TN_API size_t tn_dtype_size(tn_dtype dtype) TN_NOEXCEPT;
/* "float32"; "invalid" for a number that is no dtype. */
TN_API const char* tn_dtype_name(tn_dtype dtype) TN_NOEXCEPT;
/* Takes "float32" and the words of op declarations ("float", "half"). */
TN_API tn_dtype tn_dtype_from_name(const char* name, tn_status* status) TN_NOEXCEPT;

/* ---- Tensors: dense, row-major ---- */

typedef struct tn_tensor tn_tensor;

/* Fresh memory: uninitialised, or empty strings. */
TN_API tn_tensor* tn_tensor_new(tn_dtype dtype, const int64_t* dims, int32_t rank,
                                tn_status* status) TN_NOEXCEPT;
/* A copy of `bytes` bytes, which must be what dtype and shape ask for. Plain dtypes only. */
TN_API tn_tensor* tn_tensor_new_from(tn_dtype dtype, const int64_t* dims, int32_t rank,
                                     const void* data, size_t bytes, tn_status* status) TN_NOEXCEPT;
/*
 * Memory of the caller, aligned to its elements, which nobody writes until release(argument) is
 * called, once, on whatever thread ends the last share; not after a failure. `release` may be NULL.
 * The library never writes to it. Plain dtypes only.
 */
TN_API tn_tensor* tn_tensor_borrow(tn_dtype dtype, const int64_t* dims, int32_t rank,
                                   const void* data, size_t bytes, void (*release)(void* argument),
                                   void* argument, tn_status* status) TN_NOEXCEPT;
/* Another handle of the same bytes. */
TN_API tn_tensor* tn_tensor_share(const tn_tensor* tensor, tn_status* status) TN_NOEXCEPT;
/* The same bytes under another shape of as many elements. */
TN_API tn_tensor* tn_tensor_reshape(const tn_tensor* tensor, const int64_t* dims, int32_t rank,
                                    tn_status* status) TN_NOEXCEPT;
TN_API void tn_tensor_delete(tn_tensor* tensor) TN_NOEXCEPT;

TN_API tn_dtype tn_tensor_dtype(const tn_tensor* tensor) TN_NOEXCEPT;
TN_API int32_t tn_tensor_rank(const tn_tensor* tensor) TN_NOEXCEPT;
/* Extents, tn_tensor_rank() of them. */
TN_API const int64_t* tn_tensor_dims(const tn_tensor* tensor) TN_NOEXCEPT;
TN_API int64_t tn_tensor_num_elements(const tn_tensor* tensor) TN_NOEXCEPT;
TN_API size_t tn_tensor_bytes(const tn_tensor* tensor) TN_NOEXCEPT;
/* The elements; NULL for string, resource and variant. Valid as long as the handle. */
TN_API const void* tn_tensor_data(const tn_tensor* tensor) TN_NOEXCEPT;
/*
 * The elements, to be written: memory that is borrowed or shared is copied first, so no other
 * handle and no session sees the change. Ask again after the tensor was given to another function.
 */
TN_API void* tn_tensor_mutable_data(tn_tensor* tensor, tn_status* status) TN_NOEXCEPT;
/* Bytes of a string element, *length of them, not terminated; valid until it is set again. */
TN_API const char* tn_tensor_string(const tn_tensor* tensor, int64_t element, size_t* length,
                                    tn_status* status) TN_NOEXCEPT;
TN_API void tn_tensor_set_string(tn_tensor* tensor, int64_t element, const char* bytes,
                                 size_t length, tn_status* status) TN_NOEXCEPT;

/* ---- Attributes ---- */

typedef int32_t tn_attr_kind; /* a list has the number of its elements + TN_ATTR_LIST */
enum {
  TN_ATTR_INT = 1,
  TN_ATTR_FLOAT = 2,
  TN_ATTR_BOOL = 3,
  TN_ATTR_STRING = 4,
  TN_ATTR_TYPE = 5,
  TN_ATTR_SHAPE = 6,
  TN_ATTR_TENSOR = 7,
  TN_ATTR_FUNCTION = 8,
  TN_ATTR_LIST = 16
};

/*
 * Attributes for a call of an op. A mistake while setting (a NULL, an unknown dtype, no memory) is
 * kept and reported by whatever uses the attributes. Setting a name again replaces its value.
 */
typedef struct tn_attrs tn_attrs;

TN_API tn_attrs* tn_attrs_new(void) TN_NOEXCEPT; /* NULL when out of memory */
TN_API void tn_attrs_delete(tn_attrs* attrs) TN_NOEXCEPT;
TN_API void tn_attrs_set_int(tn_attrs* attrs, const char* name, int64_t value) TN_NOEXCEPT;
TN_API void tn_attrs_set_float(tn_attrs* attrs, const char* name, double value) TN_NOEXCEPT;
TN_API void tn_attrs_set_bool(tn_attrs* attrs, const char* name, int32_t value) TN_NOEXCEPT;
TN_API void tn_attrs_set_string(tn_attrs* attrs, const char* name, const char* bytes,
                                size_t length) TN_NOEXCEPT;
TN_API void tn_attrs_set_type(tn_attrs* attrs, const char* name, tn_dtype value) TN_NOEXCEPT;
TN_API void tn_attrs_set_shape(tn_attrs* attrs, const char* name, const int64_t* dims,
                               int32_t rank) TN_NOEXCEPT;
TN_API void tn_attrs_set_tensor(tn_attrs* attrs, const char* name,
                                const tn_tensor* value) TN_NOEXCEPT;
/* A function by name, with the attributes that instantiate it (NULL: none). */
TN_API void tn_attrs_set_function(tn_attrs* attrs, const char* name, const char* function,
                                  const tn_attrs* function_attrs) TN_NOEXCEPT;
/* Lists of `count` elements; the array may be NULL where count is 0. */
TN_API void tn_attrs_set_ints(tn_attrs* attrs, const char* name, const int64_t* values,
                              size_t count) TN_NOEXCEPT;
TN_API void tn_attrs_set_floats(tn_attrs* attrs, const char* name, const double* values,
                                size_t count) TN_NOEXCEPT;
TN_API void tn_attrs_set_bools(tn_attrs* attrs, const char* name, const int32_t* values,
                               size_t count) TN_NOEXCEPT;
TN_API void tn_attrs_set_strings(tn_attrs* attrs, const char* name, const char* const* bytes,
                                 const size_t* lengths, size_t count) TN_NOEXCEPT;
TN_API void tn_attrs_set_types(tn_attrs* attrs, const char* name, const tn_dtype* values,
                               size_t count) TN_NOEXCEPT;
TN_API void tn_attrs_set_shapes(tn_attrs* attrs, const char* name, const int64_t* const* dims,
                                const int32_t* ranks, size_t count) TN_NOEXCEPT;
TN_API void tn_attrs_set_tensors(tn_attrs* attrs, const char* name, const tn_tensor* const* values,
                                 size_t count) TN_NOEXCEPT;
TN_API void tn_attrs_set_functions(tn_attrs* attrs, const char* name, const char* const* functions,
                                   const tn_attrs* const* function_attrs, size_t count) TN_NOEXCEPT;

/* A call of an op: all attributes set, all dtypes known. Of an operation, a callback, or
 * tn_call_new. */
typedef struct tn_call tn_call;

TN_API const char* tn_call_op(const tn_call* call) TN_NOEXCEPT; /* "MatMul" */
TN_API int32_t tn_call_num_inputs(const tn_call* call) TN_NOEXCEPT;
TN_API int32_t tn_call_num_outputs(const tn_call* call) TN_NOEXCEPT;
TN_API tn_dtype tn_call_input_dtype(const tn_call* call, int32_t input) TN_NOEXCEPT;
TN_API tn_dtype tn_call_output_dtype(const tn_call* call, int32_t output) TN_NOEXCEPT;
/* TN_ATTR_...; 0 and NotFound when the op has no such attribute. */
TN_API tn_attr_kind tn_call_attr_kind(const tn_call* call, const char* name,
                                      tn_status* status) TN_NOEXCEPT;
/* Elements of a list attribute; 1 for one that is no list. */
TN_API size_t tn_call_attr_size(const tn_call* call, const char* name,
                                tn_status* status) TN_NOEXCEPT;
/* Element `index` of a list; 0 where the attribute is no list. Errors: NotFound, InvalidArgument
 * (another kind), OutOfRange. */
TN_API int64_t tn_call_attr_int(const tn_call* call, const char* name, size_t index,
                                tn_status* status) TN_NOEXCEPT;
TN_API double tn_call_attr_float(const tn_call* call, const char* name, size_t index,
                                 tn_status* status) TN_NOEXCEPT;
TN_API int32_t tn_call_attr_bool(const tn_call* call, const char* name, size_t index,
                                 tn_status* status) TN_NOEXCEPT;
TN_API const char* tn_call_attr_string(const tn_call* call, const char* name, size_t index,
                                       size_t* length, tn_status* status) TN_NOEXCEPT;
TN_API tn_dtype tn_call_attr_type(const tn_call* call, const char* name, size_t index,
                                  tn_status* status) TN_NOEXCEPT;
/* The rank (-1: unknown; also after a failure); *dims, where dims is not NULL, are the extents. */
TN_API int32_t tn_call_attr_shape(const tn_call* call, const char* name, size_t index,
                                  const int64_t** dims, tn_status* status) TN_NOEXCEPT;
TN_API const tn_tensor* tn_call_attr_tensor(const tn_call* call, const char* name, size_t index,
                                            tn_status* status) TN_NOEXCEPT;
/* The function's name. */
TN_API const char* tn_call_attr_function(const tn_call* call, const char* name, size_t index,
                                         tn_status* status) TN_NOEXCEPT;
/* The inputs [*begin, *end) of a call that a declared input stands for: several for a list
 * ("values: N * T"), else one. NotFound when the op declares no such name. */
TN_API void tn_call_input_range(const tn_call* call, const char* name, int32_t* begin, int32_t* end,
                                tn_status* status) TN_NOEXCEPT;
TN_API void tn_call_output_range(const tn_call* call, const char* name, int32_t* begin,
                                 int32_t* end, tn_status* status) TN_NOEXCEPT;

/* ---- The op registry ---- */

typedef struct tn_op tn_op; /* a definition; lives as long as the process */

enum {                                      /* tn_op_flags() */
       TN_OP_STATEFUL = 1 << 0,             /* never folded, merged, duplicated */
       TN_OP_COMMUTATIVE = 1 << 1,          /* inputs may be swapped */
       TN_OP_DATA_DEPENDENT_SHAPE = 1 << 2, /* output shapes may follow from values */
       TN_OP_NOT_DIFFERENTIABLE = 1 << 3,   /* no gradient by nature */
       TN_OP_ALLOCATES_OUTPUTS = 1 << 4,    /* the kernel provides its outputs */
       TN_OP_ASYNCHRONOUS = 1 << 5 /* its kernel is started and may wait; it allocates outputs */
};

/* Writes up to `capacity` ops, sorted by name; returns how many there are. */
TN_API size_t tn_op_list(const tn_op** ops, size_t capacity, tn_status* status) TN_NOEXCEPT;
/* NULL and NotFound (naming the nearest op) when absent. */
TN_API const tn_op* tn_op_find(const char* name, tn_status* status) TN_NOEXCEPT;
TN_API const char* tn_op_name(const tn_op* op) TN_NOEXCEPT;
TN_API const char* tn_op_doc(const tn_op* op) TN_NOEXCEPT;
TN_API int32_t tn_op_version(const tn_op* op) TN_NOEXCEPT;
TN_API uint32_t tn_op_flags(const tn_op* op) TN_NOEXCEPT;
TN_API int32_t tn_op_num_inputs(const tn_op* op) TN_NOEXCEPT; /* as declared: a list is one */
TN_API int32_t tn_op_num_outputs(const tn_op* op) TN_NOEXCEPT;
TN_API int32_t tn_op_num_attrs(const tn_op* op) TN_NOEXCEPT;
/* Names; NULL when out of range. */
TN_API const char* tn_op_input_name(const tn_op* op, int32_t input) TN_NOEXCEPT;
TN_API const char* tn_op_output_name(const tn_op* op, int32_t output) TN_NOEXCEPT;
TN_API const char* tn_op_attr_name(const tn_op* op, int32_t attr) TN_NOEXCEPT;
TN_API tn_attr_kind tn_op_attr_kind(const tn_op* op, int32_t attr) TN_NOEXCEPT;
TN_API int32_t tn_op_attr_has_default(const tn_op* op, int32_t attr) TN_NOEXCEPT;
/* The dtype of an input or output where the declaration fixes it, else 0. */
TN_API tn_dtype tn_op_input_dtype(const tn_op* op, int32_t input) TN_NOEXCEPT;
TN_API tn_dtype tn_op_output_dtype(const tn_op* op, int32_t output) TN_NOEXCEPT;

/* ---- Graphs ---- */

typedef struct tn_graph tn_graph;
typedef struct tn_operation tn_operation; /* a node; belongs to its graph */
typedef struct tn_output tn_output;       /* one output of a node; belongs to its graph */
/* Operations and outputs stay valid while the graph, or a session of it, is not deleted. */

TN_API tn_graph* tn_graph_new(tn_status* status) TN_NOEXCEPT;
TN_API void tn_graph_delete(tn_graph* graph) TN_NOEXCEPT;
/* Writes beside `path`, then renames. */
TN_API void tn_graph_save(tn_graph* graph, const char* path, tn_status* status) TN_NOEXCEPT;
TN_API tn_graph* tn_graph_load(const char* path, tn_status* status) TN_NOEXCEPT;
TN_API void tn_graph_set_seed(tn_graph* graph, int64_t seed) TN_NOEXCEPT;
/* Nodes in creation order; NULL beyond the last. */
TN_API size_t tn_graph_num_operations(tn_graph* graph) TN_NOEXCEPT;
TN_API tn_operation* tn_graph_operation(tn_graph* graph, size_t index,
                                        tn_status* status) TN_NOEXCEPT;
/* NULL and NotFound when absent. */
TN_API tn_operation* tn_graph_find_operation(tn_graph* graph, const char* name,
                                             tn_status* status) TN_NOEXCEPT;
/* "h1/MatMul:0", or "h1/MatMul" for output 0. */
TN_API const tn_output* tn_graph_find_output(tn_graph* graph, const char* name,
                                             tn_status* status) TN_NOEXCEPT;

/*
 * Adds one operation: new, then inputs in declared order, control inputs, device, attributes, then
 * finish (which ends the builder whatever comes of it) or delete. Mistakes are kept until finish.
 */
typedef struct tn_builder tn_builder;

/* `name` is made unique ("x", "x_1"); NULL: the op's name. */
TN_API tn_builder* tn_builder_new(tn_graph* graph, const char* op, const char* name,
                                  tn_status* status) TN_NOEXCEPT;
TN_API void tn_builder_delete(tn_builder* builder) TN_NOEXCEPT;
TN_API void tn_builder_add_input(tn_builder* builder, const tn_output* input) TN_NOEXCEPT;
/* For an input declared as list ("values: N * T"). */
TN_API void tn_builder_add_input_list(tn_builder* builder, const tn_output* const* inputs,
                                      size_t count) TN_NOEXCEPT;
TN_API void tn_builder_add_control_input(tn_builder* builder, const tn_operation* op) TN_NOEXCEPT;
TN_API void tn_builder_set_device(tn_builder* builder, const char* device) TN_NOEXCEPT;
/* The builder's attributes, to be set; they belong to it. */
TN_API tn_attrs* tn_builder_attrs(tn_builder* builder) TN_NOEXCEPT;
/* Sets all of `attrs`, which stay the caller's. */
TN_API void tn_builder_set_attrs(tn_builder* builder, const tn_attrs* attrs) TN_NOEXCEPT;
/* The error begins with op and node: [MatMul node "h1/MatMul"] ... */
TN_API tn_operation* tn_builder_finish(tn_builder* builder, tn_status* status) TN_NOEXCEPT;

TN_API const char* tn_operation_name(const tn_operation* op) TN_NOEXCEPT;
TN_API const char* tn_operation_type(const tn_operation* op) TN_NOEXCEPT;
TN_API const char* tn_operation_device(const tn_operation* op)
    TN_NOEXCEPT; /* until it is changed */
TN_API const tn_call* tn_operation_call(const tn_operation* op) TN_NOEXCEPT;
TN_API int32_t tn_operation_num_inputs(const tn_operation* op) TN_NOEXCEPT;
TN_API int32_t tn_operation_num_outputs(const tn_operation* op) TN_NOEXCEPT;
TN_API int32_t tn_operation_num_control_inputs(const tn_operation* op) TN_NOEXCEPT;
/* NULL when out of range. */
TN_API const tn_output* tn_operation_input(const tn_operation* op, int32_t input) TN_NOEXCEPT;
TN_API const tn_output* tn_operation_output(const tn_operation* op, int32_t output) TN_NOEXCEPT;
TN_API tn_operation* tn_operation_control_input(const tn_operation* op, int32_t input) TN_NOEXCEPT;

TN_API tn_operation* tn_output_operation(const tn_output* output) TN_NOEXCEPT;
TN_API int32_t tn_output_index(const tn_output* output) TN_NOEXCEPT;
TN_API tn_dtype tn_output_dtype(const tn_output* output) TN_NOEXCEPT;
/* What is known of the shape: the rank or -1; writes up to `capacity` extents. */
TN_API int32_t tn_output_shape(const tn_output* output, int64_t* dims,
                               int32_t capacity) TN_NOEXCEPT;
/* Adds what the caller knows of the shape; a contradiction is InvalidArgument. */
TN_API void tn_output_set_shape(const tn_output* output, const int64_t* dims, int32_t rank,
                                tn_status* status) TN_NOEXCEPT;

/*
 * Adds operations that compute d(sum of ys)/dx for every x; gradients[i] is NULL where no y depends
 * on xs[i]. `grad_ys` (NULL: ones) are the gradients that come in at the ys. A gradient made of
 * slices is made dense.
 */
TN_API void tn_graph_add_gradients(tn_graph* graph, const tn_output* const* ys, size_t num_ys,
                                   const tn_output* const* xs, size_t num_xs,
                                   const tn_output* const* grad_ys, const tn_output** gradients,
                                   tn_status* status) TN_NOEXCEPT;

/* ---- Functions: bodies of calls, branches and loops ---- */

/*
 * A graph that will be a body: a function's, a branch's, a loop's condition or body. Operations are
 * added to it as to any other; `outer`, which may itself be a body, is the graph that the call will
 * stand in. An operation that takes a value of a graph around takes it through an argument that the
 * body gets for it (a capture); the call passes it. `name` is made unique among functions.
 * tn_graph_delete() ends the handle, before or after the call is made.
 */
TN_API tn_graph* tn_body_new(tn_graph* outer, const char* name, tn_status* status) TN_NOEXCEPT;
/* The body's next argument; shapes may be partly known. Before it is called. */
TN_API const tn_output* tn_body_add_argument(tn_graph* body, const char* name, tn_dtype dtype,
                                             const int64_t* dims, int32_t rank,
                                             tn_status* status) TN_NOEXCEPT;
/* What stands in the body for a value of a graph around: the same for the same. */
TN_API const tn_output* tn_body_capture(tn_graph* body, const tn_output* outer,
                                        tn_status* status) TN_NOEXCEPT;
/* What the body gives: values of it, or of a graph around. */
TN_API void tn_body_set_results(tn_graph* body, const tn_output* const* results, size_t count,
                                tn_status* status) TN_NOEXCEPT;

/*
 * Adds to `graph`, of which they are bodies, an operation that calls them; its outputs are their
 * results (and, of a loop, the captures after these). Afterwards nothing can be added to a body.
 * `name` may be NULL. All of them have gradients of any order.
 */
TN_API tn_operation* tn_graph_add_call(tn_graph* graph, const char* name, tn_graph* body,
                                       const tn_output* const* inputs, size_t num_inputs,
                                       tn_status* status) TN_NOEXCEPT;
/* then_body where cond, a bool scalar, is true, else else_body: with as many results, of the same
 * dtypes. */
TN_API tn_operation* tn_graph_add_if(tn_graph* graph, const char* name, const tn_output* cond,
                                     tn_graph* then_body, tn_graph* else_body,
                                     const tn_output* const* inputs, size_t num_inputs,
                                     tn_status* status) TN_NOEXCEPT;
/* The inputs, replaced by what `body` makes of them as long as `cond`, whose one result is a bool
 * scalar, is true of them. */
TN_API tn_operation* tn_graph_add_while(tn_graph* graph, const char* name, tn_graph* cond,
                                        tn_graph* body, const tn_output* const* inputs,
                                        size_t num_inputs, tn_status* status) TN_NOEXCEPT;

/* ---- Sessions ---- */

typedef struct tn_session tn_session;

typedef struct tn_session_options {
  size_t struct_size;
  int32_t fold_constants;              /* default 1 */
  int32_t merge_common_subexpressions; /* default 1 */
  int32_t allow_soft_placement;        /* default 0: a device that is not there is an error */
  int32_t fuse_elementwise;            /* default 1: groups of them run as one kernel */
  tn_session* share_state_with;        /* its variables are this session's; default NULL */
  const char* target;      /* "grpc://host:port" of a server whose cluster runs the graph,
                            * and keeps the variables; default NULL: this process */
  const char* credentials; /* a file that says what is shown to it (docs/security.md);
                            * default NULL: the one that TREENAIL_CREDENTIALS names */
} tn_session_options;
#define TN_SESSION_OPTIONS_INIT \
  { sizeof(tn_session_options), 1, 1, 0, 1, NULL, NULL, NULL }

/* `options` may be NULL. The graph may be deleted before the session. */
TN_API tn_session* tn_session_new(tn_graph* graph, const tn_session_options* options,
                                  tn_status* status) TN_NOEXCEPT;
/* Cancels what runs and frees variables that no other open session shares; later runs give
 * FailedPrecondition. */
TN_API void tn_session_close(tn_session* session, tn_status* status) TN_NOEXCEPT;
/* No run may be in flight. */
TN_API void tn_session_delete(tn_session* session) TN_NOEXCEPT;

/* Cancels the runs it was given to, from any thread, once and for all. */
typedef struct tn_cancellation tn_cancellation;
TN_API tn_cancellation* tn_cancellation_new(tn_status* status) TN_NOEXCEPT;
TN_API void tn_cancellation_delete(tn_cancellation* cancellation) TN_NOEXCEPT;
TN_API void tn_cancellation_cancel(tn_cancellation* cancellation, const char* reason) TN_NOEXCEPT;

typedef struct tn_run_options {
  size_t struct_size;
  int64_t timeout_ms;            /* <= 0: none; beyond it TN_DEADLINE_EXCEEDED */
  tn_cancellation* cancellation; /* may be NULL; must outlive the run */
} tn_run_options;
#define TN_RUN_OPTIONS_INIT \
  { sizeof(tn_run_options), 0, NULL }

typedef struct tn_run_metadata {
  size_t struct_size;
  int64_t nodes_executed;
  int64_t arena_bytes; /* planned memory: intermediate values and the kernels' scratch */
  double cost_ns;      /* estimate of one run on one thread */
  int32_t specialized; /* a plan for these very shapes was there or made */
  int32_t reserved;    /* 0 */
  int64_t peak_bytes;  /* arena and fetched values together; feeds and variables not counted, nor
                          what lies below shapes that depend on values */
} tn_run_metadata;
#define TN_RUN_METADATA_INIT \
  { sizeof(tn_run_metadata), 0, 0, 0.0, 0, 0, 0 }

/*
 * Computes the fetches and executes the targets, with feeds[i] replaced by values[i]. results[i] is
 * a tensor for fetches[i] that the caller deletes; all are NULL after a failure. What metadata says
 * of memory and cost is known before the run and stands there although the run fails. options and
 * metadata may be NULL; arrays may be NULL where their count is 0. Several threads may run at once.
 */
TN_API void tn_session_run(tn_session* session, const tn_run_options* options,
                           const tn_output* const* feeds, const tn_tensor* const* values,
                           size_t num_feeds, const tn_output* const* fetches, tn_tensor** results,
                           size_t num_fetches, const tn_operation* const* targets,
                           size_t num_targets, tn_run_metadata* metadata,
                           tn_status* status) TN_NOEXCEPT;

/* The same in two steps, for a loop: what is fed and fetched is looked up once. */
typedef struct tn_callable tn_callable;
TN_API tn_callable* tn_callable_new(tn_session* session, const tn_output* const* feeds,
                                    size_t num_feeds, const tn_output* const* fetches,
                                    size_t num_fetches, const tn_operation* const* targets,
                                    size_t num_targets, tn_status* status) TN_NOEXCEPT;
/* One value per feed, one result per fetch. The session may not have been deleted. */
TN_API void tn_callable_run(tn_callable* callable, const tn_run_options* options,
                            const tn_tensor* const* values, tn_tensor** results,
                            tn_run_metadata* metadata, tn_status* status) TN_NOEXCEPT;
TN_API void tn_callable_delete(tn_callable* callable) TN_NOEXCEPT;

/* ---- Immediate execution ---- */

/*
 * Executes one op. `attrs` may be NULL. `list_sizes` gives the number of inputs per declared input
 * where the op has several lists of inputs; else NULL. Writes the outputs, which the caller
 * deletes; returns how many. More of them than `capacity` is OutOfRange, and nothing is executed.
 * State (variables) belongs to the process.
 */
TN_API size_t tn_execute(const char* op, const tn_tensor* const* inputs, size_t num_inputs,
                         const tn_attrs* attrs, const int32_t* list_sizes, size_t num_list_sizes,
                         tn_tensor** outputs, size_t capacity, tn_status* status) TN_NOEXCEPT;

/* The same in two steps, for a loop: dtypes and attributes are looked at once. */
TN_API tn_call* tn_call_new(const char* op, const tn_dtype* input_dtypes, size_t num_inputs,
                            const tn_attrs* attrs, const int32_t* list_sizes, size_t num_list_sizes,
                            tn_status* status) TN_NOEXCEPT;
/* Writes tn_call_num_outputs() tensors, which the caller deletes. */
TN_API void tn_call_execute(const tn_call* call, const tn_tensor* const* inputs, size_t num_inputs,
                            tn_tensor** outputs, tn_status* status) TN_NOEXCEPT;
/* Only what tn_call_new() returned. */
TN_API void tn_call_delete(tn_call* call) TN_NOEXCEPT;

/* ---- Plugins ---- */

/*
 * Loads a library with ops and kernels (plugin.h). All it registers is there afterwards, or, on
 * failure, nothing. Loading a library again does nothing. The plugins that the environment variable
 * TREENAIL_PLUGIN_PATH names (files, or directories whose *.so are meant, separated by colons) are
 * loaded by the first call that needs ops.
 */
TN_API void tn_load_plugin(const char* path, tn_status* status) TN_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TREENAIL_TREENAIL_H_ */
