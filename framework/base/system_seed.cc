// SPDX-License-Identifier: Apache-2.0
#include "framework/base/system_seed.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "framework/base/error.h"

namespace treenail {

uint64_t system_seed() {
  uint64_t seed = 0;
  while (getrandom(&seed, sizeof(seed), 0) != static_cast<ssize_t>(sizeof(seed))) {
    if (errno != EINTR)
      throw Error(Code::kUnavailable,
                  concat("the system gives no random seed: ", std::strerror(errno)));
  }
  return seed;
}

}  // namespace treenail
