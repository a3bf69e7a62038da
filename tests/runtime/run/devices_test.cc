// SPDX-License-Identifier: Apache-2.0
// Random programs over the CPU and both simulated devices, from several threads: the results of the
// CPU alone; and runs that end by deadlines, cancellations, a lost device and closed sessions,
// after which nothing is left. What the devices themselves find ends the process (tests/simulated).
// More, from Python: tests/python/test_devices.py.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/device_library.h"
#include "framework/runtime/run/immediate.h"
#include "framework/runtime/run/session.h"
#include "framework/runtime/state/resource_manager.h"
#include "tests/simulated/exports.h"
#include "tests/support/graph_builder.h"
#include "tests/support/plugin_path.h"

namespace treenail {
namespace {

// A function of exports.h.
template <class F>
F* simulated(const char* name) {
  static void* const library = [] {
    const std::string path = test::plugin_path("simulated-device");
    load_device_library(path);
    return ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  }();
  void* const symbol = ::dlsym(library, name);
  if (symbol == nullptr) throw internal_error("no ", name, " is exported");
  return reinterpret_cast<F*>(symbol);
}
#define SIMULATED(function) simulated<decltype(function)>(#function)

constexpr int64_t kSize = 6;
const std::vector<std::string> kPlaces = {"/cpu:0", "/device:SIM:0", "/device:SIM:1"};

// A graph of `ops` random operations; on the CPU alone, or wherever chance has it.
class Program {
 public:
  Program(uint32_t seed, int ops, bool devices) : random_(seed), places_(seed), devices_(devices) {
    values_.push_back(b.placeholder(DType::kFloat32, PartialShape{kSize, kSize}, "x"));
    variable_ = at(b.variable(DType::kFloat32, PartialShape{kSize, kSize}, "v"));
    b.node("AssignVariableOp", {variable_, values_[0]}, {}, "init");
    for (int i = 0; i < ops; ++i) add();
    b.op("AddN", {pick(), pick(), values_.back()}, {}, "y");
    b.read(variable_, DType::kFloat32, "end");
  }

  // x, then the variable's value after the updates.
  std::vector<Tensor> run(Session& session, float x, const RunOptions& options = {}) const {
    Tensor feed(DType::kFloat32, Shape({kSize, kSize}));
    std::fill_n(feed.data<float>(), kSize * kSize, x);
    return session.run({{"x:0", feed}}, {"y:0"}, {}, options);
  }
  void initialize(Session& session) const {
    session.run({{"x:0", Tensor::zeros(DType::kFloat32, Shape({kSize, kSize}))}}, {}, {"init"});
  }

  test::GraphBuilder b;
  std::vector<std::string> updates;

 private:
  Output pick() { return values_[random_() % values_.size()]; }

  Output at(Output value) {
    const std::string& place = kPlaces[places_() % kPlaces.size()];
    if (devices_) b.graph->set_device(*value.node, place);
    return value;
  }

  void add() {
    const Output one = pick(), other = pick();
    const auto vector = [this](std::initializer_list<int32_t> values) {
      return b.constant(Tensor::vector<int32_t>(values));
    };
    switch (random_() % 7) {
      case 0:
        return values_.push_back(at(b.op("Add", {one, other})));
      case 1:
        return values_.push_back(at(b.op("Tanh", {one})));
      case 2:
        return values_.push_back(at(b.op("Transpose", {one, vector({1, 0})})));
      case 3: {
        const Output flat = at(b.op("Reshape", {one, vector({kSize * kSize})}));
        return values_.push_back(at(b.op("Reshape", {flat, vector({kSize, kSize})})));
      }
      case 4: {
        const Output sum = at(b.op("Sum", {one, vector({0})}, {{"keep_dims", true}}));
        return values_.push_back(at(b.op("Sigmoid", {at(b.op("Sub", {other, sum}))})));
      }
      case 5: {
        const Output chosen = at(b.op("Where", {at(b.op("Greater", {one, other}))}));
        const Output count = at(b.op("Size", {chosen}));
        const Output share = at(b.op("Cast", {count}, {{"DstT", DType::kFloat32}}));
        return values_.push_back(at(b.op("Mul", {one, at(b.op("Sigmoid", {share}))})));
      }
      default: {
        updates.push_back(concat("update", updates.size()));
        b.node("AssignAddVariableOp", {variable_, one}, {}, updates.back());
        // A control edge to wherever the next operation runs.
        values_.push_back(at(b.op("Neg", {other}, {}, {}, {b.graph->find(updates.back())})));
      }
    }
  }

  std::mt19937 random_, places_;
  const bool devices_;
  std::vector<Output> values_;
  Output variable_;
};

std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

class SimulatedDevices : public ::testing::Test {
 protected:
  void SetUp() override { SIMULATED(sim_seed)(7); }
  void TearDown() override {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(SIMULATED(sim_live_blocks)(i), 0) << "on SIM:" << i;
  }
};

TEST_F(SimulatedDevices, RandomProgramsGiveWhatTheCpuGives) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const Program here(seed, 30, false), there(seed, 30, true);
    Session cpu(here.b.graph), all(there.b.graph);
    here.initialize(cpu);
    there.initialize(all);
    for (int step = 0; step < 3; ++step) {
      const float x = 0.1F * static_cast<float>(step);
      EXPECT_EQ(values_of(here.run(cpu, x)[0]), values_of(there.run(all, x)[0])) << "seed " << seed;
      EXPECT_EQ(values_of(cpu.run({}, {"end:0"})[0]), values_of(all.run({}, {"end:0"})[0]))
          << "seed " << seed;
    }
  }
}

// Ends with the code of its error, or kOk.
class End final : public ImmediateEnd {
 public:
  explicit End(std::promise<Code>& code) : code_(code) {}
  void ended(std::vector<Tensor>, std::exception_ptr error) noexcept override {
    try {
      if (error != nullptr) std::rethrow_exception(error);
      code_.set_value(Code::kOk);
    } catch (const Error& failure) {
      code_.set_value(failure.code());
    }
  }

 private:
  std::promise<Code>& code_;
};

TEST_F(SimulatedDevices, WorkThatIsLeftOutGivesNothing) {
  test::GraphBuilder b;
  const Output neg = b.op("Neg", {b.placeholder(DType::kFloat32, PartialShape{2}, "x")});
  ResourceManager resources;
  Device* const device = accelerators()[0];
  const Tensor x(DType::kFloat32, Shape({2}), device);
  for (const bool cancelled : {false, true}) {
    CancellationToken token;
    if (cancelled) token.cancel(Code::kCancelled, "the test");
    std::promise<Code> code;
    start_taking(neg.node->op(), {x}, {&resources, "", {}, device}, token,
                 std::make_unique<End>(code));
    EXPECT_EQ(code.get_future().get(), cancelled ? Code::kCancelled : Code::kOk);
    device->wait();  // for the queue to free what the call had
  }
}

TEST_F(SimulatedDevices, SeveralThreadsRunOneSession) {
  const Program program(3, 40, true);
  Session session(program.b.graph);
  program.initialize(session);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 15; ++i) program.run(session, static_cast<float>(t));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One run, cut short by whatever chance has.
void run_and_cut(const Program& program, Session& session, std::mt19937& random) {
  RunOptions options;
  options.timeout_ms = random() % 3 == 0 ? 1 : 0;
  CancellationToken token;
  if (random() % 3 == 0) options.token = &token;
  const int lost = random() % 3 == 0 ? static_cast<int>(random() % 2) : -1;
  if (lost >= 0) SIMULATED(sim_lose)(lost, static_cast<int64_t>(random() % 60));
  std::thread canceller([&, wait = random() % 3000] {
    std::this_thread::sleep_for(std::chrono::microseconds(wait));
    token.cancel(Code::kCancelled, "the test");
  });
  try {
    program.run(session, 0.5F, options);
  } catch (const Error& error) {
    const Code code = error.code();
    EXPECT_TRUE(code == Code::kCancelled || code == Code::kDeadlineExceeded ||
                code == Code::kUnavailable)
        << error.message();
  }
  canceller.join();
  // Who copied from a lost device is lost, too.
  for (int i = 0; i < 2; ++i) SIMULATED(sim_restore)(i);
}

TEST_F(SimulatedDevices, RunsThatAreCutShortLeaveNothing) {
  std::mt19937 random(5);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Program program(seed, 40, true);
    Session session(program.b.graph);
    program.initialize(session);
    for (int i = 0; i < 10; ++i) run_and_cut(program, session, random);
    program.run(session, 0.5F);
  }
}

TEST_F(SimulatedDevices, ClosingASessionEndsItsRuns) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const Program program(seed, 60, true);
    Session session(program.b.graph);
    program.initialize(session);
    std::thread runner([&] {
      try {
        for (;;) program.run(session, 1);
      } catch (const Error& error) {
        EXPECT_TRUE(error.code() == Code::kCancelled || error.code() == Code::kFailedPrecondition)
            << error.message();
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    session.close();
    runner.join();
  }
}

}  // namespace
}  // namespace treenail
