# SPDX-License-Identifier: Apache-2.0
"""An Intel CPU that OpenBLAS does not know gets the kernels that its features allow."""

import patchtest
import support

# Extended model, model, the best feature, the kernels that go with it, and what it is.
CASES = ((0xc, 0xf, "avx512_bf16", "Cooperlake", "Emerald Rapids"),
         (0xa, 0xd, "avx512_bf16", "Cooperlake", "Granite Rapids"),
         (0xb, 0xa, "avx2", "Haswell", "Raptor Lake"),
         (0xb, 0x0, "avx512", "SkylakeX", "some model with AVX512"),
         (0xb, 0x1, "avx", "Sandybridge", "some model with AVX"),
         (0xf, 0x1, "", "Prescott", "some model without AVX"),
         (0x3, 0xc, "avx2", "Haswell", "Haswell, which it knows"))


def tree(path):
    command = support.program(path)
    wrong = []
    for exmodel, model, features, kernels, name in CASES:
        found = support.chosen(command, 6, exmodel, model, features)
        if found != kernels:
            wrong.append("%s (family 6, model 0x%x%x) gets %s instead of %s" % (
                name, exmodel, model, found, kernels))
    # Those of the entry that the others fell into.
    if support.chosen(command, 15, 0, 4, "") != "Prescott":
        wrong.append("the Pentium 4 no longer gets Prescott")
    if wrong:
        patchtest.failed("; ".join(wrong))


patchtest.main(tree=tree)
