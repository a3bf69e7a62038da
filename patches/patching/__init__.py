# SPDX-License-Identifier: Apache-2.0
"""What patches.py is made of: series (what is there, is it in order), applying (to a source tree),
trial (do the tests say that a patch is needed) and export (for debian/ and the spec)."""
