// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/chosen_fates.h"

#include <atomic>
#include <cstdlib>
#include <sstream>

#include "tests/transport/random_fates.h"

namespace treenail::test {
namespace {

std::atomic<Fates*> chosen{nullptr};

}  // namespace

void choose_fates(Fates* fates) { chosen = fates; }

void choose_fates_of_environment() {
  const char* const text = std::getenv("TREENAIL_TEST_FAULTS");
  if (text == nullptr) return;
  RandomFates::Chances chances;
  std::istringstream words(text);
  words >> chances.seed >> chances.cuts >> chances.silences >> chances.most_faults >>
      chances.most_delay_us;
  // Never freed: messages of a cluster that has ended may still ask the one before.
  chosen = new RandomFates(chances);
}

Fates::Fate chosen_fate(const std::string& path, bool reply) {
  Fates* const fates = chosen.load();
  return fates == nullptr ? Fates::Fate{} : fates->of({path.c_str(), reply});
}

}  // namespace treenail::test
