# SPDX-License-Identifier: Apache-2.0
"""What is fused beside what is not: the same bits, in fewer kernels."""

import treenail as tn


def separate():
    """The configuration of a session in which every operation is a kernel of its own."""
    options = tn.OptimizerOptions(do_elementwise_fusion=False)
    return tn.ConfigProto(graph_options=tn.GraphOptions(optimizer_options=options))


def run_both(fetches, feeds):
    """The values, which a fused and a separate session give alike, and how many kernels each
    took."""
    found, kernels = [], []
    for config in (None, separate()):
        metadata = tn.RunMetadata()
        with tn.Session(config=config) as sess:
            found.append(sess.run(fetches, feeds, run_metadata=metadata))
        kernels.append(metadata.nodes_executed)
    for fused, plain in zip(*found):
        assert fused.dtype == plain.dtype and fused.shape == plain.shape
        assert fused.tobytes() == plain.tobytes()
    return found[0], kernels
