// SPDX-License-Identifier: Apache-2.0
// A network with a loop, built (network.h), trained, saved, loaded and run without Python: it
// learns to turn points by a quarter circle.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "network.h"

using tn::Graph, tn::Tensor;

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const Tensor file = Tensor::of_strings({folder + "/weights.h5"}, {});
  std::vector<float> points, wanted;
  for (float a = 0; a < 6; a += 0.4F) {
    points.insert(points.end(), {std::cos(a), std::sin(a)});
    wanted.insert(wanted.end(), {-std::sin(a), std::cos(a)});
  }
  const tn::Shape shape{static_cast<int64_t>(points.size()) / 2, 2};
  const Tensor x = Tensor::of(points, shape), y = Tensor::of(wanted, shape);
  {
    const Graph g = turning::network();
    const tn::Session session(g);
    session.run({}, {}, {g.operation("w/init"), g.operation("b/init")});
    for (int step = 0; step <= 200; ++step) {
      const Tensor loss = session.run({{g.output("x"), x}, {g.output("y"), y}}, {g.output("loss")},
                                      {g.operation("w/train"), g.operation("b/train")})[0];
      if (step % 50 == 0) std::printf("step %d loss %.5f\n", step, loss.values<float>()[0]);
    }
    session.run({{g.output("file"), file}}, {}, {g.operation("save")});
    g.save(folder + "/network.tng");
  }
  const Graph g = Graph::load(folder + "/network.tng");
  const tn::Session session(g);
  session.run({{g.output("file"), file}}, {}, {g.operation("w/restore"), g.operation("b/restore")});
  const Tensor point = Tensor::of<float>({0.6F, 0.8F}, {1, 2});
  const auto turned =
      session.run({{g.output("x"), point}}, {g.output("turned")})[0].values<float>();
  std::printf("(0.6, 0.8) turned is (%.2f, %.2f)\n", turned[0], turned[1]);
  return std::fabs(turned[0] + 0.8F) + std::fabs(turned[1] - 0.6F) < 0.05F ? 0 : 1;
} catch (const tn::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
