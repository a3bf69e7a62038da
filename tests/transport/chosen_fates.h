// SPDX-License-Identifier: Apache-2.0
// The Fates that are asked: a test's, or those that the environment asks for.
#pragma once

#include <string>

#include "tests/transport/memory_transport.h"

namespace treenail::test {

void choose_fates(Fates* fates);
// By TREENAIL_TEST_FAULTS, where it is set (memory_transport.h).
void choose_fates_of_environment();
// Of one message.
Fates::Fate chosen_fate(const std::string& path, bool reply);

}  // namespace treenail::test
