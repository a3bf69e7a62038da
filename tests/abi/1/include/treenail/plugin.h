/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops and kernels in a library of one's own, in C11. A plugin links nothing of Treenail: it exports
 *
 *     void tn_plugin_init(const tn_host* host, tn_plugin* plugin);
 *
 * and reaches the library through `host` alone, whose entries behave as the functions of treenail.h
 * that have the same names. (Of treenail.h a plugin uses types and constants; the functions
 * declared there belong to programs that link libtreenail.) docs/custom-ops.md is the guide, and
 * tests/capi/plugin holds complete examples.
 *
 * Rules
 * - A callback reports failure by setting its status; it may not let an exception or longjmp out.
 * - Contexts, values and what they give are valid until the callback returns; the `data` of a
 *   registration must be valid until the process ends, and the host is.
 * - Shape rules, gradient rules, prepare and run may be called from several threads at once.
 * - A plugin stays loaded until the process ends. If its initialisation fails, nothing of it stays.
 * - Resources (variables) are not open to plugins in ABI version 1; their ops have version 1.
 */
#ifndef TREENAIL_PLUGIN_H_
#define TREENAIL_PLUGIN_H_

#include <stdarg.h>
#include <stdio.h>

#include "treenail/treenail.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_PLUGIN_ABI_VERSION 1u

typedef struct tn_host tn_host;

/* What a plugin says about itself, and where registrations go. tn_plugin_begin() fills it in. */
typedef struct tn_plugin {
  size_t struct_size;   /* set by the host */
  uint32_t abi_version; /* TN_PLUGIN_ABI_VERSION */
  uint32_t reserved;    /* 0 */
  size_t host_size;     /* sizeof(tn_host): how much of the table the plugin may call */
  const char* name;     /* "example"; it becomes the family of the ops */
  const char* version;  /* "1.0" */
  tn_status* status;    /* the first failure; the plugin may set it, too */
  void* registration;   /* the host's */
} tn_plugin;

/* ---- Ops ---- */

typedef struct tn_shape_context tn_shape_context;
typedef struct tn_gradient_context tn_gradient_context;
typedef struct tn_value tn_value; /* what a gradient rule computes with */

/*
 * Sets the shape of every output (an output left alone has unknown rank). Serves graph building as
 * well as execution: with fully known inputs it must give exact shapes, unless the op is flagged
 * TN_OP_DATA_DEPENDENT_SHAPE. Checks ranks and shapes; a kernel need not.
 */
typedef void (*tn_shape_rule)(const tn_host* host, tn_shape_context* context, void* data,
                              tn_status* status);

/* Sets the gradient of each needed input by emitting ops, which must have gradients themselves. */
typedef void (*tn_gradient_rule)(const tn_host* host, tn_gradient_context* context, void* data,
                                 tn_status* status);

/* Lists of strings end with NULL; a list may itself be NULL. Everything is copied. */
typedef struct tn_op_spec {
  size_t struct_size;
  const char* name;                  /* "Cube"; CamelCase, as in TensorFlow */
  const char* const* inputs;         /* "x: T", "values: N * T", "indices: int32" */
  const char* const* outputs;        /* "y: T" */
  const char* const* attrs;          /* "T: {float, double} = float", "N: int >= 1" */
  const char* doc;                   /* first sentence: what the op computes */
  uint32_t flags;                    /* TN_OP_... */
  uint32_t reserved;                 /* 0 */
  const char* const* host_inputs;    /* inputs whose value prepare needs */
  const char* const* gradient_reads; /* inputs and outputs whose value the gradient rule reads */
  const char* const* in_place;       /* pairs: an output may take the memory of a dying input */
  tn_shape_rule shape;               /* required */
  tn_gradient_rule gradient;         /* or the flag TN_OP_NOT_DIFFERENTIABLE */
  void* data;                        /* given to both rules */
} tn_op_spec;

/* ---- Kernels ---- */

typedef struct tn_prepare_context tn_prepare_context;
typedef struct tn_run_context tn_run_context;

/*
 * Chooses how to compute for given attributes, dtypes and shapes. The result is given to every run
 * with them, never changed, and shared by concurrent runs; it may be NULL.
 */
typedef void* (*tn_kernel_prepare)(const tn_host* host, tn_prepare_context* context, void* data,
                                   tn_status* status);
/* Computes all outputs. Results may depend on inputs and attributes only, never on threads. */
typedef void (*tn_kernel_run)(const tn_host* host, tn_run_context* context, const void* state,
                              tn_status* status);
/*
 * In place of run, for ops flagged TN_OP_ASYNCHRONOUS: begins, and returns without waiting. Whoever
 * has the results calls host->run_done(context, status) once, on any thread, perhaps before start
 * returns; until then context, inputs and state stay. When the run is cancelled, soon after.
 */
typedef void (*tn_kernel_start)(const tn_host* host, tn_run_context* context, const void* state);
/* Ends what prepare made; called for results other than NULL. */
typedef void (*tn_kernel_destroy)(const tn_host* host, void* state);
/* Items [begin, end) of a parallel loop. */
typedef void (*tn_parallel_body)(void* argument, int64_t begin, int64_t end, tn_status* status);

typedef struct tn_kernel_spec {
  size_t struct_size;
  const char* op;            /* declared by this plugin, another one, or Treenail */
  const char* const* types;  /* "T: {float, double}": dtypes of type attributes; NULL: all */
  tn_kernel_prepare prepare; /* may be NULL */
  tn_kernel_run run;         /* required, unless start is given */
  tn_kernel_destroy destroy; /* may be NULL */
  void* data;                /* given to prepare */
  tn_kernel_start start;     /* of an asynchronous op's kernel; else NULL */
} tn_kernel_spec;

/* ---- The host's table ---- */

struct tn_host {
  size_t struct_size;
  uint32_t abi_version;
  uint32_t reserved;   /* 0 */
  const char* version; /* of Treenail: "1.0.0" */

  /* Registering. Failures are kept in plugin->status; everything takes effect when init returns. */
  void (*register_op)(tn_plugin* plugin, const tn_op_spec* spec);
  void (*register_kernel)(tn_plugin* plugin, const tn_kernel_spec* spec);

  /* As in treenail.h. */
  tn_code (*status_code)(const tn_status* status);
  const char* (*status_message)(const tn_status* status);
  void (*status_set)(tn_status* status, tn_code code, const char* message);
  size_t (*dtype_size)(tn_dtype dtype);
  const char* (*dtype_name)(tn_dtype dtype);
  tn_tensor* (*tensor_new)(tn_dtype dtype, const int64_t* dims, int32_t rank, tn_status* status);
  tn_tensor* (*tensor_new_from)(tn_dtype dtype, const int64_t* dims, int32_t rank, const void* data,
                                size_t bytes, tn_status* status);
  void (*tensor_delete)(tn_tensor* tensor);
  tn_dtype (*tensor_dtype)(const tn_tensor* tensor);
  int32_t (*tensor_rank)(const tn_tensor* tensor);
  const int64_t* (*tensor_dims)(const tn_tensor* tensor);
  int64_t (*tensor_num_elements)(const tn_tensor* tensor);
  size_t (*tensor_bytes)(const tn_tensor* tensor);
  const void* (*tensor_data)(const tn_tensor* tensor);
  void* (*tensor_mutable_data)(tn_tensor* tensor, tn_status* status);
  const char* (*tensor_string)(const tn_tensor* tensor, int64_t element, size_t* length,
                               tn_status* status);
  void (*tensor_set_string)(tn_tensor* tensor, int64_t element, const char* bytes, size_t length,
                            tn_status* status);
  const char* (*call_op)(const tn_call* call);
  int32_t (*call_num_inputs)(const tn_call* call);
  int32_t (*call_num_outputs)(const tn_call* call);
  tn_dtype (*call_input_dtype)(const tn_call* call, int32_t input);
  tn_dtype (*call_output_dtype)(const tn_call* call, int32_t output);
  tn_attr_kind (*call_attr_kind)(const tn_call* call, const char* name, tn_status* status);
  size_t (*call_attr_size)(const tn_call* call, const char* name, tn_status* status);
  int64_t (*call_attr_int)(const tn_call* call, const char* name, size_t index, tn_status* status);
  double (*call_attr_float)(const tn_call* call, const char* name, size_t index, tn_status* status);
  int32_t (*call_attr_bool)(const tn_call* call, const char* name, size_t index, tn_status* status);
  const char* (*call_attr_string)(const tn_call* call, const char* name, size_t index,
                                  size_t* length, tn_status* status);
  tn_dtype (*call_attr_type)(const tn_call* call, const char* name, size_t index,
                             tn_status* status);
  int32_t (*call_attr_shape)(const tn_call* call, const char* name, size_t index,
                             const int64_t** dims, tn_status* status);
  const tn_tensor* (*call_attr_tensor)(const tn_call* call, const char* name, size_t index,
                                       tn_status* status);
  const char* (*call_attr_function)(const tn_call* call, const char* name, size_t index,
                                    tn_status* status);
  tn_attrs* (*attrs_new)(void);
  void (*attrs_delete)(tn_attrs* attrs);
  void (*attrs_set_int)(tn_attrs* attrs, const char* name, int64_t value);
  void (*attrs_set_float)(tn_attrs* attrs, const char* name, double value);
  void (*attrs_set_bool)(tn_attrs* attrs, const char* name, int32_t value);
  void (*attrs_set_string)(tn_attrs* attrs, const char* name, const char* bytes, size_t length);
  void (*attrs_set_type)(tn_attrs* attrs, const char* name, tn_dtype value);
  void (*attrs_set_shape)(tn_attrs* attrs, const char* name, const int64_t* dims, int32_t rank);
  void (*attrs_set_tensor)(tn_attrs* attrs, const char* name, const tn_tensor* value);
  void (*attrs_set_ints)(tn_attrs* attrs, const char* name, const int64_t* values, size_t count);
  void (*attrs_set_floats)(tn_attrs* attrs, const char* name, const double* values, size_t count);
  void (*attrs_set_types)(tn_attrs* attrs, const char* name, const tn_dtype* values, size_t count);

  /* Shape rules. Ranks and extents are -1 where they are unknown. */
  const tn_call* (*shape_call)(const tn_shape_context* context);
  int32_t (*shape_input_rank)(const tn_shape_context* context, int32_t input);
  int64_t (*shape_input_dim)(const tn_shape_context* context, int32_t input, int32_t axis);
  /* The value of an input where it is known, else NULL. */
  const tn_tensor* (*shape_input_value)(const tn_shape_context* context, int32_t input);
  /* Fails unless the rank of the input is unknown or as given. */
  void (*shape_need_rank)(const tn_shape_context* context, int32_t input, int32_t rank,
                          tn_status* status);
  void (*shape_set_output)(tn_shape_context* context, int32_t output, const int64_t* dims,
                           int32_t rank, tn_status* status);
  void (*shape_copy_input)(tn_shape_context* context, int32_t input, int32_t output,
                           tn_status* status);
  /* NumPy broadcasting of two inputs. */
  void (*shape_broadcast)(tn_shape_context* context, int32_t a, int32_t b, int32_t output,
                          tn_status* status);
  /* The shape that the elements of an int32 or int64 input spell, as far as they are known. */
  void (*shape_from_input)(tn_shape_context* context, int32_t input, int32_t output,
                           tn_status* status);

  /* Gradient rules. */
  const tn_call* (*gradient_call)(const tn_gradient_context* context);
  /* Values listed in gradient_reads. */
  const tn_value* (*gradient_input)(tn_gradient_context* context, int32_t input, tn_status* status);
  const tn_value* (*gradient_output)(tn_gradient_context* context, int32_t output,
                                     tn_status* status);
  /* Whether a gradient comes in at an output; gradient_of gives zeros where none does. */
  int32_t (*gradient_exists)(const tn_gradient_context* context, int32_t output);
  const tn_value* (*gradient_of)(tn_gradient_context* context, int32_t output, tn_status* status);
  /* Whether anybody asks for the gradient of an input. */
  int32_t (*gradient_needed)(const tn_gradient_context* context, int32_t input);
  /*
   * Emits an op. attrs may be NULL; list_sizes as in tn_execute. Writes the first `capacity`
   * outputs; returns how many the op has.
   */
  size_t (*gradient_emit)(tn_gradient_context* context, const char* op,
                          const tn_value* const* inputs, size_t num_inputs, const tn_attrs* attrs,
                          const int32_t* list_sizes, size_t num_list_sizes,
                          const tn_value** outputs, size_t capacity, tn_status* status);
  const tn_value* (*gradient_constant)(tn_gradient_context* context, const tn_tensor* value,
                                       tn_status* status);
  const tn_value* (*gradient_scalar)(tn_gradient_context* context, tn_dtype dtype, double value,
                                     tn_status* status);
  /* The shape of an input as int32 or int64 vector; needs no gradient_reads. */
  const tn_value* (*gradient_input_shape)(tn_gradient_context* context, int32_t input,
                                          tn_dtype dtype, tn_status* status);
  /* Sums a gradient of a broadcast result down to the shape of an input. */
  const tn_value* (*gradient_sum_to_input)(tn_gradient_context* context, const tn_value* value,
                                           int32_t input, tn_status* status);
  tn_dtype (*value_dtype)(const tn_value* value);
  /* The rank or -1; writes up to `capacity` extents. */
  int32_t (*value_shape)(const tn_value* value, int64_t* dims, int32_t capacity);
  void (*gradient_set)(tn_gradient_context* context, int32_t input, const tn_value* value,
                       tn_status* status);
  /* Rows `indices` (int32 or int64 [n]) of a tensor of shape `dense_shape`; values is [n, ...]. */
  void (*gradient_set_slices)(tn_gradient_context* context, int32_t input, const tn_value* values,
                              const tn_value* indices, const tn_value* dense_shape,
                              tn_status* status);

  /* Preparing a kernel. */
  const tn_call* (*prepare_call)(const tn_prepare_context* context);
  /* The rank; *dims are the extents. */
  int32_t (*prepare_input_shape)(const tn_prepare_context* context, int32_t input,
                                 const int64_t** dims);
  /* -1 for ops that allocate their outputs. */
  int32_t (*prepare_output_shape)(const tn_prepare_context* context, int32_t output,
                                  const int64_t** dims);
  /* An input listed in host_inputs. */
  const tn_tensor* (*prepare_host_value)(const tn_prepare_context* context, int32_t input,
                                         tn_status* status);
  /* Bytes of memory, aligned to 64, that each run has for itself. */
  void (*prepare_set_scratch)(tn_prepare_context* context, size_t bytes);
  /* Estimate of one run on one thread in nanoseconds; it decides on which threads kernels run. */
  void (*prepare_set_cost)(tn_prepare_context* context, double nanoseconds);

  /* Running a kernel. */
  const tn_tensor* (*run_input)(const tn_run_context* context, int32_t input);
  /* Memory of an output to be written, aligned to its elements; NULL for strings. With in_place it
   * may be an input's. */
  void* (*run_output)(tn_run_context* context, int32_t output);
  const tn_tensor* (*run_output_tensor)(const tn_run_context* context, int32_t output);
  void (*run_set_string)(tn_run_context* context, int32_t output, int64_t element,
                         const char* bytes, size_t length, tn_status* status);
  /* For ops flagged TN_OP_ALLOCATES_OUTPUTS or TN_OP_DATA_DEPENDENT_SHAPE, once per output. */
  void* (*run_allocate_output)(tn_run_context* context, int32_t output, const int64_t* dims,
                               int32_t rank, tn_status* status);
  void* (*run_scratch)(tn_run_context* context);
  /*
   * body(begin, end) over pieces of [0, total), `grain` items each and the last one shorter, on
   * several threads. Pieces depend on total and grain alone. cost_ns: estimate per item. When it
   * fails (a body failed, the run was cancelled) the kernel returns.
   */
  void (*run_parallel_for)(tn_run_context* context, int64_t total, int64_t grain, double cost_ns,
                           tn_parallel_body body, void* argument, tn_status* status);
  /* For long serial loops: whether the run was cancelled. The kernel then returns. */
  int32_t (*run_cancelled)(const tn_run_context* context);

  /* Added after 1.0; as in treenail.h where the names are. */
  void (*attrs_set_bools)(tn_attrs* attrs, const char* name, const int32_t* values, size_t count);
  void (*attrs_set_strings)(tn_attrs* attrs, const char* name, const char* const* bytes,
                            const size_t* lengths, size_t count);
  void (*attrs_set_shapes)(tn_attrs* attrs, const char* name, const int64_t* const* dims,
                           const int32_t* ranks, size_t count);
  void (*call_input_range)(const tn_call* call, const char* name, int32_t* begin, int32_t* end,
                           tn_status* status);
  void (*call_output_range)(const tn_call* call, const char* name, int32_t* begin, int32_t* end,
                            tn_status* status);
  tn_status* (*status_new)(void);
  void (*status_delete)(tn_status* status);
  /* The call that a kernel runs for. */
  const tn_call* (*run_call)(const tn_run_context* context);
  /* Ends what start began; status NULL or TN_OK: the outputs are there. The context is gone then.
   */
  void (*run_done)(tn_run_context* context, const tn_status* status);
  /*
   * Of a started kernel: callback(argument) is called, once, if the run is cancelled before
   * run_done, on whatever thread; run_done may be called in it. 0 where the run is cancelled
   * already or the kernel was not started: then it is not called. run_done waits for a callback
   * that another thread is in, so that thread may hold no lock that this one needs.
   */
  int32_t (*run_on_cancel)(tn_run_context* context, void (*callback)(void* argument),
                           void* argument);
};

/* ---- Conveniences ---- */

/* The first call of tn_plugin_init. When it gives 0, init returns: the host does not fit. */
static inline int tn_plugin_begin(const tn_host* host, tn_plugin* plugin, const char* name,
                                  const char* version) {
  plugin->abi_version = TN_PLUGIN_ABI_VERSION;
  plugin->host_size = sizeof(tn_host);
  plugin->name = name;
  plugin->version = version;
  return host->abi_version == TN_PLUGIN_ABI_VERSION && host->struct_size >= sizeof(tn_host);
}

static inline int tn_failed(const tn_host* host, const tn_status* status) {
  return host->status_code(status) != TN_OK;
}

/* Sets a status with a message as of printf, up to 511 bytes. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static inline void
tn_fail(const tn_host* host, tn_status* status, tn_code code, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  host->status_set(status, code, text);
}

/* Emits an op with up to two inputs (b may be NULL); its first output. */
static inline const tn_value* tn_emit(const tn_host* host, tn_gradient_context* context,
                                      const char* op, const tn_value* a, const tn_value* b,
                                      tn_status* status) {
  const tn_value* inputs[2];
  const tn_value* output = NULL;
  inputs[0] = a;
  inputs[1] = b;
  (void)host->gradient_emit(context, op, inputs, b == NULL ? 1u : 2u, NULL, NULL, 0, &output, 1,
                            status);
  return output;
}

/* A shape rule: output 0 has the shape of input 0. */
static inline void tn_shape_unchanged(const tn_host* host, tn_shape_context* context, void* data,
                                      tn_status* status) {
  (void)data;
  host->shape_copy_input(context, 0, 0, status);
}

/* A shape rule: inputs 0 and 1 broadcast to output 0. */
static inline void tn_shape_broadcast_binary(const tn_host* host, tn_shape_context* context,
                                             void* data, tn_status* status) {
  (void)data;
  host->shape_broadcast(context, 0, 1, 0, status);
}

/* The one symbol of a plugin; the rest may be hidden. */
#if defined(__GNUC__)
#define TN_PLUGIN_ENTRY __attribute__((visibility("default")))
#else
#define TN_PLUGIN_ENTRY
#endif
TN_PLUGIN_ENTRY void tn_plugin_init(const tn_host* host, tn_plugin* plugin);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TREENAIL_PLUGIN_H_ */
