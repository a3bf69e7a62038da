// SPDX-License-Identifier: Apache-2.0
// What a checkpoint cannot do is an Error of the right class that names file and tensor; damaged
// files never reach libhdf5, and a failed save leaves what was there.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "framework/base/adapter.h"
#include "framework/base/error.h"
#include "framework/io/checkpoint.h"
#include "framework/tensor/resource.h"
#include "tests/io/checkpoint_samples.h"
#include "tests/io/test_files.h"
#include "tests/support/needs_hdf5.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using test::TemporaryDirectory;

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kOk, "no Error");
}

class CheckpointErrors : public test::NeedsHdf5 {
 protected:
  Error reading(const std::string& bytes, bool allow_foreign = false) {
    write_bytes(path_, bytes);
    return error_of([&] { CheckpointReader(path_, allow_foreign); });
  }
  std::string good() {
    write_checkpoint(path_, sample_tensors());
    return file_bytes(path_);
  }
  TemporaryDirectory directory_;
  const std::string path_ = directory_.file("model.ckpt");
};

TEST_F(CheckpointErrors, TruncatedAnywhere) {
  const std::string bytes = good();
  for (size_t size = 0; size < bytes.size(); size += size < 1100 ? 1 : 97) {
    const Error error = reading(bytes.substr(0, size));
    ASSERT_EQ(error.code(), Code::kDataLoss) << size << ": " << error.message();
    ASSERT_NE(error.message().find(path_), std::string::npos);
    ASSERT_EQ(reading(bytes.substr(0, size), true).code(), Code::kDataLoss) << size;
  }
  EXPECT_EQ(
      reading(bytes.substr(0, 2000)).message(),
      path_ + " is truncated: it has 2000 bytes, written were " + std::to_string(bytes.size()));
  EXPECT_EQ(reading("").message(), path_ + " is empty; needed is a checkpoint");
}

TEST_F(CheckpointErrors, AByteChangedAnywhere) {
  const std::string bytes = good();
  for (size_t at = 0; at < bytes.size(); at += at < 520 ? 1 : 61) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    const Error error = reading(changed);
    ASSERT_EQ(error.code(), Code::kDataLoss) << at << ": " << error.message();
    ASSERT_EQ(reading(changed, true).code(), Code::kDataLoss) << at;
  }
  EXPECT_EQ(reading(bytes + "x").code(), Code::kDataLoss);
}

TEST_F(CheckpointErrors, OtherFiles) {
  const Error text = reading("hello, world");
  EXPECT_EQ(text.code(), Code::kDataLoss);
  EXPECT_NE(text.message().find("is no checkpoint"), std::string::npos);
  EXPECT_EQ(reading("hello, world", true).code(), Code::kDataLoss);
  EXPECT_EQ(reading(std::string(5000, '\0')).code(), Code::kDataLoss);
  // The HDF5 part alone is a valid HDF5 file.
  const std::string foreign = good().substr(512);
  const Error error = reading(foreign);
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_NE(error.message().find("allow_foreign"), std::string::npos);
  EXPECT_EQ(reading(foreign, true).code(), Code::kOk);
  EXPECT_EQ(reading(std::string(1024, '\0') + foreign).code(), Code::kInvalidArgument);
}

TEST_F(CheckpointErrors, LaterFormat) {
  // As a later Treenail would write: another number, and a checksum that fits. Made by hand from
  // the layout.
  std::string bytes = good();
  const auto crc = [](const std::string& data) {
    uint32_t value = 0xffffffffu;
    for (const char c : data) {
      value ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ ((value & 1u) != 0 ? 0x82f63b78u : 0u);
    }
    return ~value;
  };
  bytes[8] = 2;
  const uint32_t sum = crc(bytes.substr(0, 508));
  for (int i = 0; i < 4; ++i)
    bytes[508 + static_cast<size_t>(i)] = static_cast<char>(sum >> (8 * i));
  const Error error = reading(bytes);
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_EQ(error.message(),
            path_ + " has checkpoint format 2; this version of Treenail reads format 1");
}

TEST_F(CheckpointErrors, AbsentFilesAndTensors) {
  EXPECT_EQ(error_of([&] { CheckpointReader{directory_.file("absent")}; }).message(),
            "cannot open " + directory_.file("absent") + ": No such file or directory");
  EXPECT_EQ(error_of([&] { CheckpointReader{directory_.path()}; }).code(),
            Code::kFailedPrecondition);
  write_checkpoint(path_, NamedTensors{{"dense/kernel", Tensor::scalar<float>(1)},
                                       {"step", Tensor::scalar<float>(1)}});
  const CheckpointReader reader(path_);
  EXPECT_EQ(reader.find("dense/kernal"), nullptr);
  const Error error = error_of([&] { reader.read("dense/kernal"); });
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.message(),
            "tensor \"dense/kernal\" is not in checkpoint " + path_ +
                "; did you mean \"dense/kernel\"?; it holds 2 tensors: dense/kernel, step");
}

TEST_F(CheckpointErrors, WhatCannotBeSaved) {
  const Tensor one = Tensor::scalar<float>(1);
  const auto saving = [&](const NamedTensors& tensors) {
    return error_of([&] { write_checkpoint(path_, tensors); });
  };
  EXPECT_EQ(saving({{"", one}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(saving({{std::string("a\0b", 3), one}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(saving({{std::string(9000, 'x'), one}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(saving({{std::string(8192, 'x'), one}}).code(), Code::kOk);
  EXPECT_EQ(saving({{"x", one}, {"x", one}}).message(), "tensor \"x\" is saved twice");
  EXPECT_EQ(saving({{"r", Tensor(DType::kResource, Shape())}}).message(),
            "tensor \"r\" is resource[]; this dtype cannot be saved");
  EXPECT_EQ(directory_.entries(), 1);
}

TEST_F(CheckpointErrors, PartsThatDoNotFit) {
  const Tensor rows = Tensor::zeros(DType::kFloat32, Shape({2, 3}));
  const auto adding = [&](const Tensor& tensor, const char* slice) {
    return error_of([&] {
      CheckpointWriter writer(path_);
      writer.add_slice("x", rows, TensorSlice::parse("4 3 0,2:-"));
      writer.add_slice("x", tensor, TensorSlice::parse(slice));
    });
  };
  EXPECT_EQ(adding(rows, "4 3 2,2:-").code(), Code::kOk);
  EXPECT_EQ(adding(rows, "4 3 1,2:-").message(),
            "parts of tensor \"x\" overlap: \"4 3 0,2:-\" and \"4 3 1,2:-\"");
  EXPECT_EQ(adding(rows, "5 3 2,2:-").message(),
            "tensor \"x\" is saved as parts of float32[4,3] and of float32[5,3]");
  EXPECT_EQ(adding(Tensor::zeros(DType::kInt32, Shape({2, 3})), "4 3 2,2:-").code(),
            Code::kInvalidArgument);
  EXPECT_EQ(adding(rows, "4 3 2,1:-").message(),
            "tensor \"x\" is float32[2,3], the slice \"4 3 2,1:-\" has shape [1,3]");
  EXPECT_EQ(adding(rows, "2 3 -:-").message(), "tensor \"x\" is saved twice");
}

TEST_F(CheckpointErrors, ForeignFilesOfH5py) {
  const CheckpointReader reader(test_data("foreign.h5"), /*allow_foreign=*/true);
  EXPECT_EQ(tensor_values(reader.read("big_endian")), "float64[3] [1.5, -2, 1e+300]");
  EXPECT_EQ(tensor_values(reader.read("group/half")), "float16[2] [0.5, -2]");
  EXPECT_EQ(tensor_values(reader.read("flags")), "bool[3] [true, false, true]");
  EXPECT_EQ(tensor_values(reader.read("complex")), "complex64[2] [1+2j, -0-1j]");
  EXPECT_EQ(tensor_values(reader.read("words")), "string[2] [\"ab\", \"c\"]");
  EXPECT_EQ(tensor_values(reader.read("fixed")), "string[2] [\"abc\", \"de\"]");
  EXPECT_EQ(tensor_values(reader.read("scalar")), "int64[] 7");
  const Tensor packed = reader.read("packed");
  ASSERT_EQ(packed.shape(), Shape({100, 10}));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(packed.data<int32_t>()[i], i);
  for (const char* name : {"record", "nothing", "quad"}) {
    EXPECT_EQ(reader.get(name).dtype, DType::kInvalid);
    EXPECT_EQ(error_of([&] { reader.read(name); }).code(), Code::kUnimplemented) << name;
  }
  EXPECT_NE(error_of([&] { reader.read("record"); }).message().find("is a compound of 12 bytes"),
            std::string::npos);
}

// Format 1 as release 0.1.0 wrote it stays readable.
TEST_F(CheckpointErrors, FirstFormatStaysReadable) {
  const CheckpointReader reader(test_data("format1.ckpt"));
  const NamedTensors saved = sample_tensors();
  EXPECT_EQ(reader.entries().size(), saved.size());
  for (const auto& [name, tensor] : saved)
    EXPECT_TRUE(same_tensor(reader.read(name), tensor)) << name;
}

// The printer of libhdf5's errors belongs to the program (h5py sets its own); it is neither called
// nor changed.
TEST_F(CheckpointErrors, ErrorPrinterIsQuietAndRestored) {
  using Printer = int32_t (*)(int64_t, void*);
  hdf5_version();  // opens the adapter
  void* adapter = ::dlopen((private_library_directory() + "/adapters/libtreenail-hdf5.so").c_str(),
                           RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(adapter, nullptr);
  const auto set =
      reinterpret_cast<int (*)(int64_t, Printer, void*)>(::dlsym(adapter, "H5Eset_auto2"));
  const auto get =
      reinterpret_cast<int (*)(int64_t, Printer*, void**)>(::dlsym(adapter, "H5Eget_auto2"));
  ASSERT_NE(set, nullptr);
  int called = 0;
  const Printer mine = [](int64_t, void* data) -> int32_t {
    ++*static_cast<int*>(data);
    return 0;
  };
  ASSERT_GE(set(0, mine, &called), 0);
  const std::string broken = "\x89HDF\r\n\x1a\n" + std::string(500, 'x');
  const Error error = reading(broken, true);
  EXPECT_EQ(error.code(), Code::kDataLoss);
  EXPECT_NE(error.message().find("HDF5 could not open the file"), std::string::npos)
      << error.message();
  write_checkpoint(path_, {});
  Printer found = nullptr;
  void* data = nullptr;
  ASSERT_GE(get(0, &found, &data), 0);
  EXPECT_EQ(found, mine);
  EXPECT_EQ(data, &called);
  EXPECT_EQ(called, 0);
  set(0, nullptr, nullptr);
  ::dlclose(adapter);
}

// --- Refusals of the system, each in a child of its own
// -------------------------------------------------------------

template <class F>
int in_child(F&& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(f());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int limit_file_size(rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {bytes, bytes};
  return ::setrlimit(RLIMIT_FSIZE, &limit);
}

TEST_F(CheckpointErrors, FullDiskLeavesTheOldCheckpoint) {
  write_checkpoint(path_, NamedTensors{{"x", Tensor::scalar<int32_t>(1)}});
  // Too large already while tensors are written.
  EXPECT_EQ(in_child([&] {
              if (limit_file_size(1 << 20) != 0) return 10;
              const Error error = error_of([&] {
                write_checkpoint(
                    path_, NamedTensors{{"x", Tensor::zeros(DType::kFloat32, Shape({1 << 20}))}});
              });
              if (error.code() != Code::kResourceExhausted) return 11;
              if (error.message().find(path_) == std::string::npos) return 12;
              // HDF5 goes on working.
              return *CheckpointReader(path_).read("x").data<int32_t>() == 1 ? 0 : 13;
            }),
            0);
  // Only when the file is finished: until then the small things are in HDF5's memory.
  EXPECT_EQ(in_child([&] {
              if (limit_file_size(200'000) != 0) return 10;
              NamedTensors many;
              for (int i = 0; i < 2000; ++i)
                many.emplace_back("t" + std::to_string(i), Tensor::scalar<int32_t>(i));
              const Error error = error_of([&] { write_checkpoint(path_, many); });
              if (error.code() != Code::kResourceExhausted) return 11;
              return *CheckpointReader(path_).read("x").data<int32_t>() == 1 ? 0 : 13;
            }),
            0);
  EXPECT_EQ(*CheckpointReader(path_).read("x").data<int32_t>(), 1);
  EXPECT_EQ(directory_.entries(), 1);
}

TEST_F(CheckpointErrors, PermissionDenied) {
  write_checkpoint(path_, NamedTensors{{"x", Tensor::scalar<int32_t>(1)}});
  ASSERT_EQ(::chmod(path_.c_str(), 0), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0555), 0);
  EXPECT_EQ(in_child([&] {
              if (::geteuid() == 0 && ::seteuid(65534) != 0) return 10;
              const Error read = error_of([&] { CheckpointReader{path_}; });
              if (read.code() != Code::kPermissionDenied) return 11;
              const Error write = error_of([&] { write_checkpoint(path_, {}); });
              return write.code() == Code::kPermissionDenied ? 0 : 12;
            }),
            0);
  ::chmod(directory_.path().c_str(), 0755);
}

}  // namespace
}  // namespace treenail
