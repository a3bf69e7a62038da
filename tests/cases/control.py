# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/control.cc."""

from harness import op

op("NoOp", lambda: []).case()
