// SPDX-License-Identifier: Apache-2.0
// Writing datasets. Files are made to be the same bytes for the same content: no time stamps.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/dtype.h"
#include "kernels/adapters/hdf5/hdf5_contents.h"

namespace treenail::hdf5 {
namespace {

void write_attribute(hid_t dataset, const char* name, std::string_view value) {
  constexpr const char* kDoing = "write an attribute";
  TypeId type = checked<TypeId>(H5Tcopy(H5T_C_S1), Code::kInternal, kDoing);
  check(H5Tset_size(type.get(), std::max<size_t>(value.size(), 1)), Code::kInternal, kDoing);
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), Code::kInternal, kDoing);
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), Code::kInternal, kDoing);
  const SpaceId space = checked<SpaceId>(H5Screate(H5S_SCALAR), Code::kInternal, kDoing);
  const AttributeId attribute = checked<AttributeId>(
      H5Acreate2(dataset, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), Code::kInternal,
      kDoing);
  const std::string bytes(value.empty() ? std::string_view("\0", 1) : value);
  check(H5Awrite(attribute.get(), type.get(), bytes.data()), Code::kInternal, kDoing);
}

// The rows [begin, begin + rows) of the first axis; everything for a scalar.
SpaceId rows_of(hid_t space, int rank, const hsize_t* dims, int64_t begin, int64_t rows) {
  SpaceId selected = checked<SpaceId>(H5Scopy(space), Code::kInternal, "select rows");
  if (rank == 0) return selected;
  hsize_t start[kHdf5MaxRank] = {};
  hsize_t count[kHdf5MaxRank];
  std::copy_n(dims, rank, count);
  start[0] = static_cast<hsize_t>(begin);
  count[0] = static_cast<hsize_t>(rows);
  check(H5Sselect_hyperslab(selected.get(), H5S_SELECT_SET, start, nullptr, count, nullptr),
        Code::kInternal, "select rows");
  return selected;
}

bool is_text(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    if (lead == 0) return false;
    const int more = lead < 0x80                   ? 0
                     : lead >= 0xc2 && lead < 0xe0 ? 1
                     : lead >= 0xe0 && lead < 0xf0 ? 2
                     : lead >= 0xf0 && lead < 0xf5 ? 3
                                                   : -1;
    if (more < 0 || bytes.size() - i <= static_cast<size_t>(more)) return false;
    uint32_t point = more == 0 ? lead : lead & (0x3fu >> more);
    for (int k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(bytes[i + static_cast<size_t>(k)]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3fu);
    }
    const bool overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
    if (overlong || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    i += static_cast<size_t>(more) + 1;
  }
  return true;
}

void make_groups(Hdf5File* file, std::string_view path) {
  for (size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const std::string group(path.substr(0, slash));
    if (!file->groups.insert(group).second) continue;
    const ListId creation =
        checked<ListId>(H5Pcreate(H5P_GROUP_CREATE), Code::kInternal, "prepare a group");
    check(H5Pset_obj_track_times(creation.get(), 0), Code::kInternal, "prepare a group");
    checked<GroupId>(
        H5Gcreate2(file->id.get(), group.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
        Code::kInternal, "make a group");
  }
}

void write_strings(hid_t dataset, hid_t type, hid_t space, const Hdf5Dataset& tensor,
                   const Hdf5Bytes* elements, bool text) {
  hsize_t dims[kHdf5MaxRank];
  std::copy_n(tensor.dims, tensor.rank, dims);
  const int64_t rows = tensor.rank == 0 ? 1 : tensor.dims[0];
  const int64_t row = rows == 0 ? 0 : elements_of(tensor.rank, tensor.dims) / rows;
  const int64_t step = rows_at_once(tensor.rank, tensor.dims);
  std::vector<std::string> terminated;
  std::vector<const char*> pointers;
  std::vector<hvl_t> lists;
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t end = std::min(rows, begin + step);
    const int64_t batch = (end - begin) * row;
    const auto count = static_cast<hsize_t>(batch);
    terminated.clear();
    pointers.clear();
    lists.clear();
    for (int64_t i = begin * row; i < end * row; ++i) {
      if (text) {
        terminated.emplace_back(elements[i].bytes, elements[i].size);
      } else {
        lists.push_back({elements[i].size, const_cast<char*>(elements[i].bytes)});
      }
    }
    for (const std::string& bytes : terminated) pointers.push_back(bytes.c_str());
    const SpaceId selected = rows_of(space, tensor.rank, dims, begin, end - begin);
    const SpaceId memory =
        checked<SpaceId>(H5Screate_simple(1, &count, nullptr), Code::kInternal, "select rows");
    const void* data = text ? static_cast<const void*>(pointers.data()) : lists.data();
    check(H5Dwrite(dataset, type, memory.get(), selected.get(), H5P_DEFAULT, data), Code::kInternal,
          "write strings");
  }
}

SpaceId space_of(const Hdf5Dataset& tensor) {
  if (tensor.rank == 0)
    return checked<SpaceId>(H5Screate(H5S_SCALAR), Code::kInternal, "make a shape");
  hsize_t dims[kHdf5MaxRank];
  std::copy_n(tensor.dims, tensor.rank, dims);
  return checked<SpaceId>(H5Screate_simple(tensor.rank, dims, nullptr), Code::kInternal,
                          "make a shape");
}

DatasetId make_dataset(Hdf5File* file, const Hdf5Dataset& tensor, hid_t type, hid_t space) {
  const ListId creation =
      checked<ListId>(H5Pcreate(H5P_DATASET_CREATE), Code::kInternal, "prepare a dataset");
  check(H5Pset_obj_track_times(creation.get(), 0), Code::kInternal, "prepare a dataset");
  // Every element is written once, right away; variable-length ones need the fill value all the
  // same.
  if (tensor.dtype != static_cast<int32_t>(DType::kString)) {
    check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), Code::kInternal,
          "prepare a dataset");
  }
  DatasetId dataset = checked<DatasetId>(H5Dcreate2(file->id.get(), tensor.path, type, space,
                                                    H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                                         Code::kInternal, "make a dataset");
  write_attribute(dataset.get(), kDTypeAttribute, tensor.type_text);
  if (tensor.name != nullptr) write_attribute(dataset.get(), kNameAttribute, tensor.name);
  if (tensor.slice != nullptr) write_attribute(dataset.get(), kSliceAttribute, tensor.slice);
  return dataset;
}

}  // namespace

void write(Hdf5File* file, const Hdf5Dataset* tensor, const void* elements, Hdf5Status* status) {
  run_on(file, status, [&] {
    const auto dtype = static_cast<DType>(tensor->dtype);
    const int64_t count = elements_of(tensor->rank, tensor->dims);
    make_groups(file, tensor->path);
    const SpaceId space = space_of(*tensor);
    if (dtype != DType::kString) {
      const TypeId type = file_type(dtype);
      DatasetId dataset = make_dataset(file, *tensor, type.get(), space.get());
      if (count > 0) {
        const TypeId memory = memory_type(dtype);
        check(H5Dwrite(dataset.get(), memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, elements),
              Code::kInternal, "write a dataset");
      }
      check(H5Dclose(dataset.release()), Code::kInternal, "write a dataset");
      return;
    }
    const auto* strings = static_cast<const Hdf5Bytes*>(elements);
    const bool text = std::all_of(strings, strings + count, [](const Hdf5Bytes& string) {
      return is_text({string.bytes, string.size});
    });
    const TypeId type = text ? text_type() : bytes_type();
    DatasetId dataset = make_dataset(file, *tensor, type.get(), space.get());
    if (count > 0) write_strings(dataset.get(), type.get(), space.get(), *tensor, strings, text);
    check(H5Dclose(dataset.release()), Code::kInternal, "write strings");
  });
}

}  // namespace treenail::hdf5
