/* SPDX-License-Identifier: Apache-2.0 */
/* A client in C11: the header compiles as C, and the calls of a whole program fit together. */
#include "tests/capi/client.h"

#include <string.h>

#include "treenail/treenail.h"

static tn_operation* add(tn_graph* graph, const char* op, const char* name,
                         const tn_output* const* inputs, int count, tn_status* status) {
  tn_builder* builder = tn_builder_new(graph, op, name, status);
  int i;
  for (i = 0; i < count; ++i) tn_builder_add_input(builder, inputs[i]);
  if (strcmp(op, "Placeholder") == 0) {
    const int64_t dims[] = {-1, 2};
    tn_attrs_set_type(tn_builder_attrs(builder), "dtype", TN_FLOAT32);
    tn_attrs_set_shape(tn_builder_attrs(builder), "shape", dims, 2);
  }
  return tn_builder_finish(builder, status);
}

/* y = relu(x x^T) */
static int run(tn_graph* graph, tn_status* status, float* result) {
  const float numbers[] = {1, -2, 3, 4};
  const int64_t dims[] = {2, 2};
  const tn_output *x, *y, *inputs[2];
  tn_builder* product;
  tn_session* session;
  tn_tensor *value, *fetched = NULL;
  const tn_tensor* fed;
  x = tn_operation_output(add(graph, "Placeholder", "x", NULL, 0, status), 0);
  if (x == NULL) return 1;
  product = tn_builder_new(graph, "MatMul", NULL, status);
  tn_builder_add_input(product, x);
  tn_builder_add_input(product, x);
  tn_attrs_set_bool(tn_builder_attrs(product), "transpose_b", 1);
  inputs[0] = tn_operation_output(tn_builder_finish(product, status), 0);
  if (inputs[0] == NULL) return 2;
  y = tn_operation_output(add(graph, "Relu", "y", inputs, 1, status), 0);
  if (y == NULL) return 3;
  session = tn_session_new(graph, NULL, status);
  if (session == NULL) return 4;
  value = tn_tensor_new_from(TN_FLOAT32, dims, 2, numbers, sizeof(numbers), status);
  fed = value;
  tn_session_run(session, NULL, &x, &fed, 1, &y, &fetched, 1, NULL, 0, NULL, status);
  tn_tensor_delete(value);
  tn_session_delete(session);
  if (fetched == NULL) return 5;
  memcpy(result, tn_tensor_data(fetched), 4 * sizeof(float));
  tn_tensor_delete(fetched);
  return 0;
}

int run_client(float* result, char* message, size_t size) {
  tn_status* status = tn_status_new();
  tn_graph* graph = tn_graph_new(status);
  int outcome = graph == NULL ? 10 : run(graph, status, result);
  tn_graph_delete(graph);
  strncpy(message, tn_status_message(status), size - 1);
  message[size - 1] = '\0';
  tn_status_delete(status);
  return outcome;
}
