# SPDX-License-Identifier: Apache-2.0
"""Ops on checkpoint files, and the two that exist only inside a session."""

from harness import no_case

for name in ("Save", "Restore", "MergeCheckpoints", "ShardedFilename"):
    no_case(name, "works on files; tests/kernels/io_test.cc")
for name in ("_Arg", "_Retval", "_Copy", "_Wait", "_Send", "_Recv", "_RunPiece"):
    no_case(name, "exists only in a session's copy of a graph; tests/runtime/run/session_test.cc")
