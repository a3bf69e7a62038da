# SPDX-License-Identifier: Apache-2.0
"""The same single operations in onnxruntime, those it has. Argument: threads."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


def main() -> None:
    import onnx_models
    import onnxruntime
    import works
    threads = int(sys.argv[1])

    def values_of(work, result):
        return works.channels_last_results(work, [result])

    harness.serve_works({"version": onnxruntime.__version__}, works.BY_TITLE,
                        lambda work: onnx_models.operation(work, threads), values_of)


main()
