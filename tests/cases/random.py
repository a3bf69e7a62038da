# SPDX-License-Identifier: Apache-2.0
"""Ops of framework/ops/random.cc: their streams are stated in tests/cases/test_random.py."""

from harness import no_case

for name in (
    "RandomUniform",
    "RandomStandardNormal",
    "TruncatedNormal",
    "RandomUniformInt",
    "RandomStream",
    "RandomShuffle",
    "Multinomial",
    "StatelessRandomUniform",
    "StatelessRandomNormal",
    "StatelessTruncatedNormal",
    "StatelessRandomUniformInt",
):
    no_case(name, "random; test_random.py")
