# SPDX-License-Identifier: Apache-2.0
"""Programs to read and to begin from; each is built from the installed headers, as by a user."""

Excluded(files=["examples/**/*.cc", "examples/**/*.c", "examples/**/*.h"],
         reason="built from installed headers alone by tests/gen/test_examples.py")
