# SPDX-License-Identifier: Apache-2.0
"""What debian-cuda/control leaves open: print lines for the package's .substvars.

  cuda_substvars.py --build obj-x86_64-linux-gnu PLUGIN

treenail:PrivateAbi is the virtual package of the libtreenail that the plugin is built for;
cuda:Libraries are those that it opens by their sonames, under Debian's names and NVIDIA's.
"""

import argparse
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from gen import private_abi  # noqa: E402  (the path must be set first)
from gen.errors import ConfigureError  # noqa: E402

# As gen/cuda.py calls a library: Debian's package of it, and NVIDIA's. What a plugin does without,
# as cuDNN, is no recommendation.
PACKAGES = {"cublasLt": ("libcublaslt", "libcublas"), "cufft": ("libcufft", "libcufft")}


def libraries(toolkit):
    """Relations, for a record of gen/cuda.json: libcublaslt13 | libcublas-13-0."""
    release = toolkit["version"].replace(".", "-")
    return ", ".join("%s%s | %s-%s" % (debian, toolkit["majors"][name], vendor, release)
                     for name, (debian, vendor) in sorted(PACKAGES.items())
                     if name in toolkit["majors"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the build directory")
    parser.add_argument("plugin")
    options = parser.parse_args()
    try:
        with open(os.path.join(options.build, "gen/cuda.json"), encoding="utf-8") as stream:
            toolkit = json.load(stream)
        print("treenail:PrivateAbi=%s%s" % (
            private_abi.NAME, private_abi.of_library(options.plugin)))
    except (OSError, ConfigureError) as error:
        sys.exit("cuda_substvars: %s" % error)
    print("cuda:Libraries=" + libraries(toolkit))


if __name__ == "__main__":
    main()
