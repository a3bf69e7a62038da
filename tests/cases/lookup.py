# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/lookup.cc."""

from harness import no_case

for name in ("HashTableV2", "MutableHashTableV2", "MutableHashTableOfTensorsV2",
             "LookupTableFindV2", "LookupTableInsertV2", "LookupTableRemoveV2",
             "LookupTableSizeV2", "LookupTableExportV2", "LookupTableImportV2",
             "InitializeTableV2", "InitializeTableFromTextFileV2"):
    no_case(name, "state between runs; tests/python/test_lookup.py")
