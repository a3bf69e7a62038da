// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/profile.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_directory.h"

namespace treenail {
namespace {

using testing::error_of;

PlacementProfile some_profile() {
  PlacementProfile profile;
  for (const int64_t ns : {100, 300}) {
    profile.add("CPU", "dense/MatMul", {}, ns);
    profile.add("CPU", "Relu", std::vector<std::string>{"Add", "Mul"}, 2 * ns);
    profile.end_run();
  }
  profile.add("GPU", "Relu", {}, 7);
  return profile;
}

constexpr const char* kText =
    "treenail-placement-profile 1\n"
    "runs 2\n"
    "kernel CPU Relu 2 800 Add Mul\n"
    "kernel CPU dense/MatMul 2 400\n"
    "kernel GPU Relu 1 7\n"
    "end 3\n";

TEST(PlacementProfile, IsALineForEachKernel) {
  EXPECT_EQ(some_profile().to_text(), kText);
  const PlacementProfile read = PlacementProfile::from_text(kText);
  EXPECT_EQ(read.to_text(), kText);
  EXPECT_EQ(read.runs(), 2);
  ASSERT_EQ(read.entries().size(), 3U);
  EXPECT_EQ(read.entries()[0].fused, (std::vector<std::string>{"Add", "Mul"}));
}

constexpr const char* kTextWithFigures =
    "treenail-placement-profile 2\n"
    "runs 0\n"
    "device /job:w/replica:0/task:0/device:CPU:0 50000000000 9000000000 800\n"
    "link /job:w/replica:0/task:0 /job:w/replica:0/task:1 60000 3000000000\n"
    "link /job:w/replica:0/task:1 /job:w/replica:0/task:0 60000 2000000000\n"
    "end 3\n";

TEST(PlacementProfile, HasALineForEachDeviceAndLinkThatWasMeasured) {
  PlacementProfile profile;
  profile.set_device("/job:w/replica:0/task:0/device:CPU:0", {50'000'000'000, 9'000'000'000, 800});
  const PlacementProfile::Link there{"/job:w/replica:0/task:0", "/job:w/replica:0/task:1"};
  profile.set_link({there.second, there.first}, {60'000, 2'000'000'000});
  profile.set_link(there, {1, 1});
  profile.set_link(there, {60'000, 3'000'000'000});  // the last one counts
  EXPECT_EQ(profile.to_text(), kTextWithFigures);
  const PlacementProfile read = PlacementProfile::from_text(kTextWithFigures);
  EXPECT_EQ(read.to_text(), kTextWithFigures);
  EXPECT_EQ(read.links().at(there).bytes_per_second, 3'000'000'000);
  EXPECT_NE(error_of([&] { profile.set_device("a b", {1, 1, 1}); }), "no error");
  EXPECT_NE(error_of([&] { profile.set_device("a", {0, 1, 1}); }), "no error");
  EXPECT_NE(error_of([&] { profile.set_link({"a", ""}, {1, 1}); }), "no error");
  EXPECT_NE(error_of([&] { profile.set_link({"a", "b"}, {-1, 1}); }), "no error");
  // The first version has no such lines.
  std::string first = kTextWithFigures;
  first[std::string("treenail-placement-profile ").size()] = '1';
  EXPECT_NE(error_of([&] { PlacementProfile::from_text(first); }).find("line 3 of a"),
            std::string::npos);
}

constexpr const char* kTextWithContention =
    "treenail-placement-profile 3\n"
    "runs 0\n"
    "device /device:CPU:0 50000000000 9000000000 800\n"
    "device /device:CPU:1 50000000000 9000000000 800\n"
    "contention /device:CPU:0 box 1000\n"
    "contention /device:CPU:1 box 1388\n"
    "end 4\n";

TEST(PlacementProfile, HasALineForEachDeviceThatOthersOfItsHostSlow) {
  PlacementProfile profile;
  for (const char* device : {"/device:CPU:0", "/device:CPU:1"})
    profile.set_device(device, {50'000'000'000, 9'000'000'000, 800});
  profile.set_contention("/device:CPU:0", {"box", 1000});
  profile.set_contention("/device:CPU:1", {"other", 1500});
  profile.set_contention("/device:CPU:1", {"box", 1388});  // the last one counts
  EXPECT_EQ(profile.to_text(), kTextWithContention);
  const PlacementProfile read = PlacementProfile::from_text(kTextWithContention);
  EXPECT_EQ(read.to_text(), kTextWithContention);
  EXPECT_EQ(read.contention().at("/device:CPU:1").thousandths, 1388);
  EXPECT_EQ(read.contention().at("/device:CPU:1").host, "box");
}

TEST(PlacementProfile, RefusesSlowdownsThatNoDeviceHas) {
  PlacementProfile profile;
  profile.set_device("/device:CPU:0", {1, 1, 1});
  const auto setting = [&](const char* device, PlacementProfile::ContentionFigures figures) {
    return error_of([&] { profile.set_contention(device, figures); });
  };
  EXPECT_EQ(setting("/device:CPU:0", {"box", 999}),
            "InvalidArgument: a placement profile was given 999 thousandths as the slowdown of "
            "/device:CPU:0; needed are at least 1000");
  EXPECT_EQ(setting("/device:CPU:7", {"box", 1000}),
            "InvalidArgument: a placement profile was given a slowdown of \"/device:CPU:7\", of "
            "which it has no other figures");
  EXPECT_EQ(setting("/device:CPU:0", {"", 1000}),
            "InvalidArgument: a placement profile cannot hold the name \"\"");
  EXPECT_TRUE(profile.contention().empty());
  const auto line = [](const std::string& text, const std::string& why) {
    const std::string head = "treenail-placement-profile 3\nruns 0\ndevice /device:CPU:0 1 1 1\n";
    EXPECT_EQ(error_of([&] { PlacementProfile::from_text(head + text + "\nend 2\n"); }),
              "InvalidArgument: line 4 of a placement profile, \"" + text + "\": " + why);
  };
  const std::string least = "the slowdown in thousandths must be a whole number of at least 1000";
  line("contention /device:CPU:0 box 999", least);
  line("contention /device:CPU:0 box -1500", least);
  line("contention /device:CPU:0 box nan", least);
  line("contention /device:CPU:0 box 1500.5", least);
  line("contention /device:CPU:1 box 1500", "no line before it has the figures of that device");
  line("contention /device:CPU:0 1500",
       "a line is \"runs N\", \"kernel KIND NAME COUNT NANOSECONDS FUSED...\", \"device NAME FLOPS "
       "BYTES NANOSECONDS\", \"link FROM TO NANOSECONDS BYTES\", \"contention DEVICE HOST "
       "THOUSANDTHS\" or \"end N\"");
  // Versions before have no such line.
  std::string second = kTextWithContention;
  second[std::string("treenail-placement-profile ").size()] = '2';
  EXPECT_NE(error_of([&] { PlacementProfile::from_text(second); }).find("line 5 of a"),
            std::string::npos);
  std::string twice = kTextWithContention;
  twice.insert(twice.find("end"), "contention /device:CPU:1 box 1388\n");
  EXPECT_NE(error_of([&] {
              PlacementProfile::from_text(twice);
            }).find("the same contention stands twice"),
            std::string::npos);
}

TEST(PlacementProfile, GoesToDiskAndBack) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("placement.profile");
  some_profile().save(path);
  EXPECT_EQ(PlacementProfile::load(path).to_text(), kText);
  EXPECT_NE(error_of([] { PlacementProfile::load("/there/is/none"); }).find("NotFound"),
            std::string::npos);
}

TEST(PlacementProfile, RefusesOthersWithTheLine) {
  const auto reading = [](const std::string& text) {
    return error_of([&] { PlacementProfile::from_text(text); });
  };
  const std::string head = "treenail-placement-profile 1\nruns 1\n";
  const std::string what =
      ": a line is \"runs N\", \"kernel KIND NAME COUNT NANOSECONDS FUSED...\" or \"end N\"";
  const auto line = [&](const std::string& text, const std::string& why) {
    EXPECT_EQ(reading(head + text + "\nend 1\n"),
              "InvalidArgument: line 3 of a placement profile, \"" + text + "\": " + why);
  };
  EXPECT_EQ(reading(""),
            "InvalidArgument: it is no placement profile that this Treenail knows: it does not "
            "begin with the line \"treenail-placement-profile 1\", "
            "\"treenail-placement-profile 2\" or \"treenail-placement-profile 3\"");
  EXPECT_EQ(reading("treenail-placement-profile 4\n").find("InvalidArgument"), 0U);
  EXPECT_EQ(reading(head + "hello\nend 0\n"),
            "InvalidArgument: line 3 of a placement profile, \"hello\"" + what);
  line("kernel CPU a 0 5", "the count must be a whole number of at least 1");
  line("kernel CPU a 1 -5", "the time in ns must be a whole number of at least 0");
  line("kernel CPU a 1 5x", "the time in ns must be a whole number of at least 0");
  line("kernel CPU a 1 99999999999999999999",
       "the time in ns must be a whole number of at least 0");
  line("kernel CPU  1 5", "words are separated by single spaces");
  EXPECT_EQ(reading(head + "kernel CPU a 1 5\nkernel CPU a 1 6\nend 2\n"),
            "InvalidArgument: line 4 of a placement profile, \"kernel CPU a 1 6\": the same kernel "
            "stands twice");
  EXPECT_EQ(reading(head), "DataLoss: a placement profile has no end: it was cut short");
  EXPECT_EQ(reading(head + "end 4\n"),
            "DataLoss: a placement profile has 0 kernels, and its end tells 4");
  EXPECT_EQ(reading(head + "end 0\nend 0\n"),
            "InvalidArgument: line 4 of a placement profile, \"end 0\": nothing may follow the "
            "end");
  EXPECT_THROW(PlacementProfile().add("CPU", "a b", {}, 1), Error);
}

// Cut anywhere, or with any byte changed: an Error, or another profile that writes itself again.
TEST(PlacementProfile, NothingElseHappensToChangedFiles) {
  for (const std::string text : {kText, kTextWithFigures, kTextWithContention}) {
    for (size_t end = 0; end < text.size(); ++end)
      EXPECT_NE(error_of([&] { PlacementProfile::from_text(text.substr(0, end)); }), "no error")
          << end;
  }
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const char* const texts[] = {kText, kTextWithFigures, kTextWithContention};
    std::string changed = texts[i % 3];
    for (int n = 0; n < 1 + i % 4; ++n)
      changed[random() % changed.size()] = static_cast<char>(random() % 256);
    try {
      const PlacementProfile read = PlacementProfile::from_text(changed);
      EXPECT_EQ(PlacementProfile::from_text(read.to_text()).to_text(), read.to_text());
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace treenail
