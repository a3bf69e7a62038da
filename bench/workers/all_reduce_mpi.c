/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithm of Treenail's groups in plain C over MPI: all-to-all of slices, a sum in the order
 * of ranks, all-gather. Prints as all_reduce_treenail.py does. Compiled by
 * bench/figure_collectives.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void all_reduce(const float* value, float* parts, float* result, int slice, int rank,
                       int ranks) {
  MPI_Alltoall(value, slice, MPI_FLOAT, parts, slice, MPI_FLOAT, MPI_COMM_WORLD);
  float* own = result + (size_t)rank * slice;
  for (int i = 0; i < slice; ++i) {
    float sum = parts[i];
    for (int r = 1; r < ranks; ++r) sum += parts[(size_t)r * slice + i];
    own[i] = sum;
  }
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, result, slice, MPI_FLOAT, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const size_t sizes[] = {1 << 10, 1 << 20, 16 << 20, 64 << 20};
  for (int which = 0; which < 4; ++which) {
    const size_t bytes = sizes[which];
    const size_t n = bytes / sizeof(float);
    const int rounds = bytes <= 1 << 10 ? 500 : bytes <= 1 << 20 ? 100 : 11;
    float *value = calloc(n, sizeof(float)), *parts = calloc(n, sizeof(float));
    float* result = calloc(n, sizeof(float));
    double* took = calloc((size_t)rounds, sizeof(double));
    for (size_t i = 0; i < n; ++i) value[i] = (float)i; /* else all of it is one page of zeros */
    for (int i = 0; i < rounds; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      all_reduce(value, parts, result, (int)(n / (size_t)ranks), rank, ranks);
      took[i] = MPI_Wtime() - begin;
    }
    qsort(took, (size_t)rounds, sizeof(double), compare);
    if (rank == 0)
      printf("{\"name\": \"c\", \"bytes\": %zu, \"seconds\": %.9f}\n", bytes, took[rounds / 2]);
    free(value), free(parts), free(result), free(took);
  }
  MPI_Finalize();
  return 0;
}
