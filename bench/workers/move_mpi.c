/* SPDX-License-Identifier: Apache-2.0 */
/* Values from rank 0 to rank 1 in plain C over MPI, one after the other, or many that lie apart at
 * once, asked for by an empty message, as a task asks for them. Prints as cluster_treenail.py does.
 * Compiled by bench/figure_mpi_values.py. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

/* Of memory of its own each, all asked for at once. */
static void move_many(int rank) {
  enum { kValues = 64, kBytes = 1 << 20, kRounds = 40 };
  char* const values = malloc((size_t)kValues * kBytes);
  MPI_Request requests[kValues];
  double took[kRounds];
  for (size_t i = 0; i < (size_t)kValues * kBytes; ++i) values[i] = (char)i;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = MPI_Wtime();
    if (rank == 0) {
      MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    for (int i = 0; i < kValues; ++i) {
      char* const value = values + (size_t)i * kBytes;
      if (rank == 0) {
        MPI_Isend(value, kBytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
      } else {
        MPI_Irecv(value, kBytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
      }
    }
    MPI_Waitall(kValues, requests, MPI_STATUSES_IGNORE);
    took[round] = (MPI_Wtime() - begin) / kValues;
  }
  if (rank == 1) {
    qsort(took, kRounds, sizeof(double), compare);
    printf("{\"name\": \"many\", \"bytes\": %d, \"seconds\": %.9f}\n", kBytes, took[kRounds / 2]);
  }
  free(values);
}

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const size_t sizes[] = {1 << 20, 16 << 20, 64 << 20};
  move_many(rank);
  enum { kRounds = 40 };
  for (int which = 0; which < 3; ++which) {
    const int bytes = (int)sizes[which];
    char* value = malloc((size_t)bytes);
    double took[kRounds];
    for (int i = 0; i < bytes; ++i) value[i] = (char)i;
    for (int i = 0; i < kRounds; ++i) {
      if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(value, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      } else {
        const double begin = MPI_Wtime();
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(value, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        took[i] = MPI_Wtime() - begin;
      }
    }
    if (rank == 1) {
      qsort(took, kRounds, sizeof(double), compare);
      printf("{\"name\": \"raw\", \"bytes\": %d, \"seconds\": %.9f}\n", bytes, took[kRounds / 2]);
    }
    free(value);
  }
  MPI_Finalize();
  return 0;
}
