// SPDX-License-Identifier: Apache-2.0
// C++20 as Treenail uses it, and exceptions through threads
#include <bit>
#include <concepts>
#include <cstdint>
#include <exception>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

template <std::integral T>
constexpr T twice(T x) {
  return x + x;
}

int main() {
  static_assert(twice(21) == 42 && std::bit_cast<uint32_t>(1.0f) == 0x3f800000u);
  std::vector<int> numbers{1, 2, 3};
  int sum = 0;
  std::exception_ptr caught;
  std::thread worker([&] {
    try {
      for (int x : std::span(numbers)) sum += twice(x);
      throw std::runtime_error("as it should");
    } catch (...) {
      caught = std::current_exception();
    }
  });
  worker.join();
  try {
    std::rethrow_exception(caught);
  } catch (const std::runtime_error&) {
    return sum == 12 ? 0 : 1;
  }
}
