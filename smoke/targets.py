# SPDX-License-Identifier: Apache-2.0
"""Training on real data."""

Script(name="smoke", present="smoke/check.py", needs=["all"],
       help="train the smoke networks on real digits")
