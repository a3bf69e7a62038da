# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/tensor_list.cc."""

from harness import no_case

for name in ("EmptyTensorList", "TensorListReserve", "TensorListFromTensor", "TensorListGetItem",
             "TensorListSetItem", "TensorListUnset", "TensorListPushBack", "TensorListPopBack",
             "TensorListResize", "TensorListLength", "TensorListElementShape", "TensorListStack",
             "TensorListGather", "TensorListScatter", "TensorListScatterV2",
             "TensorListScatterIntoExistingList", "TensorListConcat", "TensorListConcatV2",
             "TensorListSplit", "TensorListConcatLists"):
    no_case(name, "a list is no array: tests/python/test_tensor_lists.py")
