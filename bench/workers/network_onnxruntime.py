# SPDX-License-Identifier: Apache-2.0
"""The same inference in onnxruntime. Arguments: network, batch size (0: the usual one), threads."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def main() -> None:
    import onnxruntime
    imported = harness.resident()
    import networks
    import onnx_models
    network, size, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    inputs, _ = networks.channels_first_batch(network, size)
    infer = onnx_models.network(network, inputs, threads)

    def losses(steps):
        raise NotImplementedError("onnxruntime does not train")

    harness.serve_network({"version": onnxruntime.__version__}, imported, losses,
                          lambda: networks.channels_last_outputs(infer()),
                          {"infer": infer})


main()
