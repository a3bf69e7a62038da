// SPDX-License-Identifier: Apache-2.0
// Checkpoints: what is written is read, whole and in parts; the same content gives the same bytes;
// replacement is atomic.
#include "framework/io/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/device/allocator.h"
#include "tests/io/checkpoint_samples.h"
#include "tests/io/test_files.h"
#include "tests/support/needs_hdf5.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using test::TemporaryDirectory;

class Checkpoint : public test::NeedsHdf5 {
 protected:
  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("model.ckpt");
};

TEST_F(Checkpoint, EveryDTypeAndNameReadsBack) {
  const NamedTensors saved = sample_tensors();
  write_checkpoint(path_, saved);
  const CheckpointReader reader(path_);
  EXPECT_EQ(reader.entries().size(), saved.size());
  for (const auto& [name, tensor] : saved) {
    const CheckpointReader::Entry& entry = reader.get(name);
    EXPECT_EQ(entry.dtype, tensor.dtype()) << name;
    EXPECT_EQ(entry.shape, tensor.shape()) << name;
    EXPECT_TRUE(same_tensor(reader.read(name), tensor))
        << name << ": " << tensor_values(reader.read(name));
  }
  EXPECT_TRUE(std::is_sorted(reader.entries().begin(), reader.entries().end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  EXPECT_EQ(directory_.entries(), 1);
}

TEST_F(Checkpoint, NoTensorsAtAll) {
  write_checkpoint(path_, {});
  EXPECT_TRUE(CheckpointReader(path_).entries().empty());
}

TEST_F(Checkpoint, SameContentSameBytes) {
  NamedTensors tensors = sample_tensors();
  write_checkpoint(path_, tensors);
  std::reverse(tensors.begin(), tensors.end());
  write_checkpoint(directory_.file("again"), tensors);
  EXPECT_EQ(file_bytes(path_), file_bytes(directory_.file("again")));
}

// A slot written before its variable finds the place of the variable taken by a group.
TEST_F(Checkpoint, NamesDoNotDependOnTheOrderOfWriting) {
  CheckpointWriter writer(path_);
  writer.add("w/Adam/m", Tensor::scalar<float>(1));
  writer.add("w/Adam", Tensor::scalar<float>(2));
  writer.add("w", Tensor::scalar<float>(3));
  writer.add("w+", Tensor::scalar<float>(4));
  writer.finish();
  const CheckpointReader reader(path_);
  EXPECT_EQ(*reader.read("w/Adam/m").data<float>(), 1);
  EXPECT_EQ(*reader.read("w/Adam").data<float>(), 2);
  EXPECT_EQ(*reader.read("w").data<float>(), 3);
  EXPECT_EQ(*reader.read("w+").data<float>(), 4);
  EXPECT_EQ(reader.entries().size(), 4u);
}

TEST_F(Checkpoint, RowsAndSlices) {
  Tensor numbers(DType::kInt32, Shape({5, 4, 3}));
  Tensor words(DType::kString, Shape({5, 4}));
  for (int i = 0; i < 60; ++i) numbers.data<int32_t>()[i] = i;
  for (int i = 0; i < 20; ++i) words.data<StringElement>()[i] = StringElement(std::to_string(i));
  write_checkpoint(path_, NamedTensors{{"n", numbers}, {"s", words}});
  const CheckpointReader reader(path_);
  EXPECT_TRUE(same_tensor(reader.read_rows("n", 1, 4), numbers.rows(1, 4)));
  EXPECT_TRUE(same_tensor(reader.read_rows("s", 3, 5), words.rows(3, 5)));
  EXPECT_EQ(reader.read_rows("n", 5, 5).shape(), Shape({0, 4, 3}));
  const Tensor box = reader.read_slice("n", TensorSlice::parse("5 4 3 1,2:3,1:1,2"));
  EXPECT_EQ(tensor_values(box), "int32[2,1,2] [22, 23, 34, 35]");
  const Tensor column = reader.read_slice("s", TensorSlice::parse("5 4 2,3:1,1"));
  EXPECT_EQ(tensor_values(column), "string[3,1] [\"9\", \"13\", \"17\"]");
  EXPECT_THROW(reader.read_rows("n", 2, 6), Error);
  EXPECT_THROW(reader.read_rows("n", -1, 2), Error);
  EXPECT_THROW(reader.read_rows("n", 3, 2), Error);
  EXPECT_THROW(reader.read_slice("n", TensorSlice::parse("5 4 -:-")), Error);
}

TEST_F(Checkpoint, ManyStringsAcrossBatches) {
  Tensor words(DType::kString, Shape({7000, 3}));
  Tensor bytes(DType::kString, Shape({20'000}));
  for (int64_t i = 0; i < words.num_elements(); ++i) {
    words.data<StringElement>()[i] =
        StringElement(std::string(static_cast<size_t>(i % 50), 'x') + std::to_string(i));
  }
  for (int64_t i = 0; i < bytes.num_elements(); ++i) {
    bytes.data<StringElement>()[i] =
        StringElement(std::string(static_cast<size_t>(i % 5), '\0') + std::to_string(i));
  }
  write_checkpoint(path_, NamedTensors{{"w", words}, {"b", bytes}});
  const CheckpointReader reader(path_);
  EXPECT_TRUE(same_tensor(reader.read("w"), words));
  EXPECT_TRUE(same_tensor(reader.read("b"), bytes));
  EXPECT_TRUE(same_tensor(reader.read_rows("w", 100, 6900), words.rows(100, 6900)));
}

TEST_F(Checkpoint, PartsMakeTheWhole) {
  Tensor whole(DType::kFloat64, Shape({6, 5}));
  for (int i = 0; i < 30; ++i) whole.data<double>()[i] = i * 0.5;
  Tensor left(DType::kFloat64, Shape({2, 3}));
  Tensor right(DType::kFloat64, Shape({2, 2}));
  for (int i = 0; i < 2; ++i) {
    std::copy_n(whole.data<double>() + (4 + i) * 5, 3, left.data<double>() + i * 3);
    std::copy_n(whole.data<double>() + (4 + i) * 5 + 3, 2, right.data<double>() + i * 2);
  }
  CheckpointWriter writer(path_);
  writer.add_slice("v/part", right, TensorSlice::parse("6 5 4,2:3,2"));
  writer.add_slice("v/part", whole.rows(0, 4), TensorSlice::parse("6 5 0,4:-"));
  writer.add_slice("v/part", left, TensorSlice::parse("6 5 4,2:0,3"));
  writer.add_slice("gap", whole.rows(0, 4), TensorSlice::parse("6 5 0,4:-"));
  writer.finish();
  const CheckpointReader reader(path_);
  EXPECT_EQ(reader.entries().size(), 2u);
  EXPECT_EQ(reader.get("v/part").shape, Shape({6, 5}));
  EXPECT_EQ(reader.get("v/part").slices.size(), 3u);
  EXPECT_TRUE(same_tensor(reader.read("v/part"), whole));
  EXPECT_TRUE(same_tensor(reader.read_rows("v/part", 3, 6), whole.rows(3, 6)));
  EXPECT_TRUE(same_tensor(reader.read_rows("gap", 1, 3), whole.rows(1, 3)));
  try {
    reader.read("gap");
    FAIL() << "no Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_NE(error.message().find("\"6 5 -:-\" is not wholly in checkpoint"), std::string::npos)
        << error.message();
  }
}

TEST_F(Checkpoint, ReplacesTheOldOneOnlyWhenFinished) {
  write_checkpoint(path_, NamedTensors{{"x", Tensor::scalar<int32_t>(1)}});
  {
    CheckpointWriter writer(path_);
    writer.add("x", Tensor::scalar<int32_t>(2));
    EXPECT_EQ(*CheckpointReader(path_).read("x").data<int32_t>(), 1);
  }
  EXPECT_EQ(*CheckpointReader(path_).read("x").data<int32_t>(), 1);
  EXPECT_EQ(directory_.entries(), 1);
  write_checkpoint(path_, NamedTensors{{"x", Tensor::scalar<int32_t>(3)}});
  EXPECT_EQ(*CheckpointReader(path_).read("x").data<int32_t>(), 3);
}

// An open reader keeps reading the file it opened, whatever takes its name.
TEST_F(Checkpoint, ReadersAndWritersAtOnce) {
  const Tensor value(Tensor::zeros(DType::kInt32, Shape({1000})));
  write_checkpoint(path_, NamedTensors{{"x", value}});
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        try {
          const CheckpointReader reader(path_);
          const Tensor read = reader.read("x");
          const int32_t first = read.data<int32_t>()[0];
          for (const int32_t element : read.values<int32_t>()) wrong += element != first;
        } catch (const Error& error) {
          ADD_FAILURE() << error.message();
          wrong += 1;
          stop.store(true);
        }
      }
    });
  }
  for (int i = 1; i <= 30 && !stop.load(); ++i) {
    Tensor next(DType::kInt32, Shape({1000}));
    std::fill_n(next.data<int32_t>(), 1000, i);
    write_checkpoint(path_, NamedTensors{{"x", next}});
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(Checkpoint, OneReaderServesManyThreads) {
  const NamedTensors saved = sample_tensors();
  write_checkpoint(path_, saved);
  const CheckpointReader reader(path_);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        for (const auto& [name, tensor] : saved) wrong += !same_tensor(reader.read(name), tensor);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(Checkpoint, WritingAndReadingHoldNoCopyOfATensor) {
  Tensor large(DType::kFloat32, Shape({4 << 20}));
  std::fill_n(large.data<float>(), large.num_elements(), 1.5f);
  Allocator& allocator = Allocator::host();
  const int64_t limit = allocator.stats().bytes_in_use + (1 << 20);
  allocator.set_limit(limit);
  write_checkpoint(path_, NamedTensors{{"large", large}});
  allocator.set_limit(limit + (17 << 20));
  EXPECT_TRUE(same_tensor(CheckpointReader(path_).read("large"), large));
  allocator.set_limit(0);
}

TEST_F(Checkpoint, OuterLockIsHeldAroundEveryUse) {
  struct Lock {
    std::atomic<int> depth{0};
    std::atomic<int> taken{0};
  } lock;
  set_hdf5_lock(
      [](void* argument) {
        auto* self = static_cast<Lock*>(argument);
        EXPECT_EQ(self->depth.fetch_add(1), 0);
        self->taken.fetch_add(1);
      },
      [](void* argument) { static_cast<Lock*>(argument)->depth.fetch_sub(1); }, &lock);
  write_checkpoint(path_, NamedTensors{{"x", Tensor::scalar<int32_t>(1)}});
  const int after_writing = lock.taken.load();
  CheckpointReader(path_).read("x");
  set_hdf5_lock(nullptr, nullptr, nullptr);
  EXPECT_GE(after_writing, 3);                      // create, write, close
  EXPECT_GE(lock.taken.load() - after_writing, 4);  // open, list, read, discard
  EXPECT_EQ(lock.depth.load(), 0);
  const int before = lock.taken.load();
  CheckpointReader(path_).read("x");
  EXPECT_EQ(lock.taken.load(), before);
}

TEST_F(Checkpoint, LibraryVersionIsKnown) {
  const std::string version = hdf5_version();
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
}

}  // namespace
}  // namespace treenail
