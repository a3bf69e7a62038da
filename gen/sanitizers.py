# SPDX-License-Identifier: Apache-2.0
"""The runs of the tests under sanitizers, each in a build of its own below the build."""

from typing import Dict, NamedTuple, Tuple


class Check(NamedTuple):
    tests: str  # in words
    flag: str  # of -fsanitize
    options: Tuple[str, ...] = ()  # of configure.py, beside those of all

    @property
    def configured(self) -> Tuple[str, ...]:
        return ("--sanitize=" + self.flag, "--kernel-isas=auto",
                "--buildtype=debugoptimized") + self.options


CHECKS: Dict[str, Check] = {
    "address-undefined": Check("the C++ tests", "address,undefined"),
    # gRPC itself was not built with it: what its locks order is taken for a race. Tests of servers
    # use the transport in memory.
    "thread": Check("the tests of thread pool, executor and servers", "thread",
                    ("--with-grpc=no",)),
}
