# SPDX-License-Identifier: Apache-2.0
"""OPENBLAS_CORETYPE takes every name that OpenBLAS itself prints."""

import patchtest
import support

NAMES = ("Cooperlake", "SkylakeX", "Haswell", "Zen", "Sandybridge", "Nehalem", "Prescott")


def tree(path):
    command = support.program(path)
    # By itself it would choose Haswell, or Sandybridge where Haswell is asked for.
    wrong = [name for name in NAMES if support.chosen(
        command, 6, 0x3, 0xc if name != "Haswell" else 0xa, "avx2", coretype=name) != name]
    if wrong:
        patchtest.failed("OPENBLAS_CORETYPE=%s is not obeyed" % ", ".join(wrong))


patchtest.main(tree=tree)
