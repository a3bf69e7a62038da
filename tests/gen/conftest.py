# SPDX-License-Identifier: Apache-2.0
"""What the generator's tests stand on."""

from product import installed  # noqa: F401  (a fixture)
from small_tree import built_tree, facts, fresh_tree, small_tree  # noqa: F401  (fixtures)
