// SPDX-License-Identifier: Apache-2.0
// How libhdf5 reaches the bytes of a file: through a descriptor the caller opened and checked, by
// pread and pwrite. A write that fails is remembered here and reported as done, because libhdf5
// crashes on its way out of one (a full disk while it closes a dataset); whoever asked for the work
// looks at `error` and throws the file away.
//
// Locks are taken only where HDF5_USE_FILE_LOCKING asks for them: checkpoints appear under their
// names when they are complete and never change, and many a cluster's file system has no locks, or
// waits for them for minutes.
#pragma once

#include "kernels/adapters/hdf5/hdf5_support.h"

namespace treenail::hdf5 {

struct Channel {
  int fd = -1;
  int error = 0;       // errno of the first failure
  int lock_error = 0;  // errno of a lock that was asked for and not had
};

// File access properties that use `channel`, which must outlive the file opened with them.
ListId access_through(Channel* channel);

}  // namespace treenail::hdf5
