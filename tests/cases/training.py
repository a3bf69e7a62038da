# SPDX-License-Identifier: Apache-2.0
"""Ops of framework/ops/training.cc: they update variables, so tests/cases/test_training.py states their behaviour."""

from harness import no_case

DENSE = (
    "GradientDescent",
    "ProximalGradientDescent",
    "Momentum",
    "Adagrad",
    "ProximalAdagrad",
    "Adadelta",
    "Adam",
    "AdaMax",
    "RMSProp",
    "CenteredRMSProp",
    "Ftrl",
)
SPARSE = (
    "ProximalGradientDescent",
    "Momentum",
    "Adagrad",
    "ProximalAdagrad",
    "Adadelta",
    "Adam",
    "RMSProp",
    "CenteredRMSProp",
    "Ftrl",
)
for name in DENSE:
    no_case("ResourceApply" + name, "updates a variable; test_training.py")
for name in SPARSE:
    no_case("ResourceSparseApply" + name, "updates a variable; test_training.py")
