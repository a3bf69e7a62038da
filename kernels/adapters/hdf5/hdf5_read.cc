// SPDX-License-Identifier: Apache-2.0
// Listing and reading datasets.
#include <string.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/tensor/dtype.h"
#include "kernels/adapters/hdf5/hdf5_contents.h"

namespace treenail::hdf5 {
namespace {

// A fixed-length string attribute; false when there is none of that kind.
bool read_attribute(hid_t dataset, const char* name, std::string* value) {
  if (H5Aexists(dataset, name) <= 0) return false;
  const AttributeId attribute = checked<AttributeId>(H5Aopen(dataset, name, H5P_DEFAULT),
                                                     Code::kDataLoss, "read an attribute");
  const TypeId type =
      checked<TypeId>(H5Aget_type(attribute.get()), Code::kDataLoss, "read an attribute");
  const SpaceId space =
      checked<SpaceId>(H5Aget_space(attribute.get()), Code::kDataLoss, "read an attribute");
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 ||
      H5Sget_simple_extent_npoints(space.get()) != 1) {
    return false;
  }
  value->assign(H5Tget_size(type.get()), '\0');
  check(H5Aread(attribute.get(), type.get(), value->data()), Code::kDataLoss, "read an attribute");
  value->resize(::strnlen(value->data(), value->size()));
  return true;
}

struct Visit {
  void (*visit)(void*, const Hdf5Dataset*);
  void* argument;
  bool failed = false;
  Failure failure = {Code::kOk, ""};
};

void describe(hid_t object, const char* path, Visit* visit) {
  const DatasetId dataset =
      checked<DatasetId>(H5Dopen2(object, path, H5P_DEFAULT), Code::kDataLoss, "open a dataset");
  const TypeId type =
      checked<TypeId>(H5Dget_type(dataset.get()), Code::kDataLoss, "read a dataset's type");
  const SpaceId space =
      checked<SpaceId>(H5Dget_space(dataset.get()), Code::kDataLoss, "read a dataset's shape");
  std::string declared, name, slice, text;
  read_attribute(dataset.get(), kDTypeAttribute, &declared);
  const bool named = read_attribute(dataset.get(), kNameAttribute, &name);
  const bool sliced = read_attribute(dataset.get(), kSliceAttribute, &slice);
  Hdf5Dataset found = {};
  found.path = path;
  DType dtype = dtype_of_type(type.get(), declared, &text);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
    dtype = DType::kInvalid;
    text = "dataset without a shape";
  } else if (rank < 0 || rank > kHdf5MaxRank) {
    dtype = DType::kInvalid;
    text = "dataset of rank " + std::to_string(rank);
  } else {
    hsize_t dims[kHdf5MaxRank] = {};
    check(H5Sget_simple_extent_dims(space.get(), dims, nullptr), Code::kDataLoss,
          "read a dataset's shape");
    found.rank = rank;
    std::copy_n(dims, rank, found.dims);
  }
  found.dtype = static_cast<int32_t>(dtype);
  found.type_text = text.c_str();
  found.name = named ? name.c_str() : nullptr;
  found.slice = sliced ? slice.c_str() : nullptr;
  visit->visit(visit->argument, &found);
}

// No exception may pass through HDF5: it is kept and thrown behind it.
herr_t visit_object(hid_t object, const char* path, const H5O_info_t* info, void* argument) {
  auto* visit = static_cast<Visit*>(argument);
  if (info->type != H5O_TYPE_DATASET) return 0;
  try {
    describe(object, path, visit);
    return 0;
  } catch (const Failure& failure) {
    visit->failure = failure;
  } catch (...) {
    visit->failure = {Code::kResourceExhausted, "out of memory"};
  }
  visit->failed = true;
  return -1;
}

struct BoxSpaces {
  SpaceId file;
  SpaceId memory;
};

SpaceId select_box(SpaceId space, const int64_t* start, const int64_t* count, int rank) {
  hsize_t from[kHdf5MaxRank], extent[kHdf5MaxRank];
  std::copy_n(start, rank, from);
  std::copy_n(count, rank, extent);
  check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, from, nullptr, extent, nullptr),
        Code::kInternal, "select a part");
  return space;
}

BoxSpaces spaces_of(hid_t dataset, const Hdf5Box& box) {
  SpaceId file = checked<SpaceId>(H5Dget_space(dataset), Code::kDataLoss, "read a dataset's shape");
  if (box.rank == 0) {
    return {std::move(file),
            checked<SpaceId>(H5Screate(H5S_SCALAR), Code::kInternal, "make a shape")};
  }
  hsize_t dims[kHdf5MaxRank];
  std::copy_n(box.memory_dims, box.rank, dims);
  SpaceId memory =
      checked<SpaceId>(H5Screate_simple(box.rank, dims, nullptr), Code::kInternal, "make a shape");
  return {select_box(std::move(file), box.start, box.count, box.rank),
          select_box(std::move(memory), box.memory_start, box.count, box.rank)};
}

DatasetId open_dataset(Hdf5File* file, const char* path) {
  return checked<DatasetId>(H5Dopen2(file->id.get(), path, H5P_DEFAULT), Code::kDataLoss,
                            "open a dataset");
}

// Strings of the three kinds a file may hold, as they lie in memory after a read.
class StringBatch {
 public:
  explicit StringBatch(hid_t dataset)
      : stored_(checked<TypeId>(H5Dget_type(dataset), Code::kDataLoss, "read a dataset's type")) {
    if (H5Tget_class(stored_.get()) == H5T_VLEN) {
      kind_ = Kind::kBytes;
      memory_ = bytes_type();
    } else if (H5Tis_variable_str(stored_.get()) > 0) {
      kind_ = Kind::kText;
      memory_ = TypeId(H5Tcopy(stored_.get()));
    } else {
      kind_ = Kind::kFixed;
      memory_ = TypeId(H5Tcopy(stored_.get()));
      width_ = H5Tget_size(stored_.get());
    }
    if (!memory_.valid()) fail(Code::kInternal, "make a type");
  }

  void read(hid_t dataset, hid_t selected, int64_t count) {
    const size_t size = kind_ == Kind::kBytes  ? sizeof(hvl_t)
                        : kind_ == Kind::kText ? sizeof(char*)
                                               : width_;
    storage_.assign(size * static_cast<size_t>(count), 0);
    const auto points = static_cast<hsize_t>(count);
    SpaceId space =
        checked<SpaceId>(H5Screate_simple(1, &points, nullptr), Code::kInternal, "select rows");
    check(H5Dread(dataset, memory_.get(), space.get(), selected, H5P_DEFAULT, storage_.data()),
          Code::kDataLoss, "read strings");
    space_ = std::move(space);
  }

  // Gives back what HDF5 allocated for the batch.
  void reclaim() {
    if (kind_ != Kind::kFixed && space_.valid()) {
      H5Dvlen_reclaim(memory_.get(), space_.get(), H5P_DEFAULT, storage_.data());
    }
    space_.reset();
  }
  ~StringBatch() { reclaim(); }

  std::string_view at(int64_t index) const {
    const auto i = static_cast<size_t>(index);
    if (kind_ == Kind::kFixed) {
      const char* bytes = reinterpret_cast<const char*>(storage_.data()) + i * width_;
      return {bytes, ::strnlen(bytes, width_)};
    }
    if (kind_ == Kind::kText) {
      const char* bytes = nullptr;
      std::memcpy(&bytes, storage_.data() + i * sizeof(char*), sizeof(char*));
      return bytes == nullptr ? std::string_view() : std::string_view(bytes);
    }
    hvl_t list;
    std::memcpy(&list, storage_.data() + i * sizeof(hvl_t), sizeof(hvl_t));
    return {static_cast<const char*>(list.p), list.len};
  }

 private:
  enum class Kind { kText, kBytes, kFixed };
  Kind kind_;
  TypeId stored_;
  TypeId memory_;
  size_t width_ = 0;
  SpaceId space_;
  std::vector<unsigned char> storage_;
};

}  // namespace

void list(Hdf5File* file, void (*visitor)(void*, const Hdf5Dataset*), void* argument,
          Hdf5Status* status) {
  run_on(file, status, [&] {
    Visit visit{visitor, argument};
    const herr_t result =
        H5Ovisit(file->id.get(), H5_INDEX_NAME, H5_ITER_INC, visit_object, &visit);
    if (visit.failed) throw visit.failure;
    check(result, Code::kDataLoss, "list the file");
  });
}

void read(Hdf5File* file, const char* path, int32_t dtype, const Hdf5Box* box, void* elements,
          Hdf5Status* status) {
  run_on(file, status, [&] {
    if (elements_of(box->rank, box->count) == 0) return;
    const DatasetId dataset = open_dataset(file, path);
    const TypeId memory = memory_type(static_cast<DType>(dtype));
    const BoxSpaces spaces = spaces_of(dataset.get(), *box);
    check(H5Dread(dataset.get(), memory.get(), spaces.memory.get(), spaces.file.get(), H5P_DEFAULT,
                  elements),
          Code::kDataLoss, "read a dataset");
  });
}

void read_strings(Hdf5File* file, const char* path, const Hdf5Box* box,
                  void (*visit)(void*, int64_t, const char*, size_t), void* argument,
                  Hdf5Status* status) {
  run_on(file, status, [&] {
    const int64_t total = elements_of(box->rank, box->count);
    if (total == 0) return;
    const DatasetId dataset = open_dataset(file, path);
    StringBatch batch(dataset.get());
    const int64_t rows = box->rank == 0 ? 1 : box->count[0];
    const int64_t row = total / rows;
    const int64_t step = rows_at_once(box->rank, box->count);
    for (int64_t begin = 0; begin < rows; begin += step) {
      const int64_t taken = std::min(step, rows - begin);
      SpaceId space =
          checked<SpaceId>(H5Dget_space(dataset.get()), Code::kDataLoss, "read a dataset's shape");
      if (box->rank > 0) {
        int64_t start[kHdf5MaxRank], count[kHdf5MaxRank];
        std::copy_n(box->start, box->rank, start);
        std::copy_n(box->count, box->rank, count);
        start[0] += begin;
        count[0] = taken;
        space = select_box(std::move(space), start, count, box->rank);
      }
      batch.read(dataset.get(), space.get(), taken * row);
      for (int64_t i = 0; i < taken * row; ++i) {
        const std::string_view bytes = batch.at(i);
        visit(argument, begin * row + i, bytes.data(), bytes.size());
      }
      batch.reclaim();
    }
  });
}

}  // namespace treenail::hdf5
