// SPDX-License-Identifier: Apache-2.0
// What a device and a link are, as treenail.placement gives it.
#pragma once

#include <memory>

#include "framework/placement/cost_placer.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// Of ([(devices, flops_per_second, bytes_per_second, seconds_per_node, slots, memory_bytes)],
// [(from, to, latency, bytes_per_second, sharing)], profile text or None, unknown dimension, trip
// count, and where there is one what tasks tell, as bytes); null for None. Errors: InvalidArgument
// (a device's name, a profile), TypeError.
std::shared_ptr<const CostModel> cost_model_from(PyObject* object);

}  // namespace treenail::python
