/* SPDX-License-Identifier: Apache-2.0 */
/* What client.c offers to client_test.cc. */
#ifndef TESTS_CAPI_CLIENT_H_
#define TESTS_CAPI_CLIENT_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0, and four numbers; else the step that failed and the status' message. */
int run_client(float* result, char* message, size_t size);

#ifdef __cplusplus
}
#endif

#endif
