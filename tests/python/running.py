# SPDX-License-Identifier: Apache-2.0
"""Runs of the default graph that need one session each."""

import treenail as tn


def run(fetches, feeds=None):
    """What a new session gives, its variables initialised."""
    with tn.Session() as sess:
        sess.run(tn.global_variables_initializer())
        return sess.run(fetches, feeds)
