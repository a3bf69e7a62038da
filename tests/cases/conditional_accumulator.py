# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/conditional_accumulator.cc."""

from harness import no_case

for name in ("ConditionalAccumulator", "AccumulatorNumAccumulated", "AccumulatorSetGlobalStep",
             "AccumulatorApplyGradient", "AccumulatorTakeGradient", "SparseConditionalAccumulator",
             "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient"):
    no_case(name, "state between runs; tests/python/test_accumulators.py")
