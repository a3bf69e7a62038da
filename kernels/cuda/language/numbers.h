// SPDX-License-Identifier: Apache-2.0
// Ends of number types for device code, which may not call std::numeric_limits' functions.
#pragma once

#include <limits>

namespace treenail::gpu {

template <class T>
inline constexpr T kLowest = std::numeric_limits<T>::has_infinity
                                 ? -std::numeric_limits<T>::infinity()
                                 : std::numeric_limits<T>::lowest();
template <class T>
inline constexpr T kHighest = std::numeric_limits<T>::has_infinity
                                  ? std::numeric_limits<T>::infinity()
                                  : std::numeric_limits<T>::max();

}  // namespace treenail::gpu
