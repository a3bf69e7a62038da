# SPDX-License-Identifier: Apache-2.0
"""The parts of the module package_repository.

publication  what a channel holds: pure functions over sets of packages
store        the folders: pool, snapshots, the switch of a channel, the lock
signing      the OpenPGP key
apt, rpm     the two formats: identity of a package, its place in the pool, the indices
publish      one publication from beginning to end
"""
