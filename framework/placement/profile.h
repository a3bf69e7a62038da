// SPDX-License-Identifier: Apache-2.0
// How long nodes took in runs that were traced, and what devices and links between tasks were
// measured to be like, kept in a file that is read only when somebody asks for it: a placement
// never changes by itself. The format: docs/formats/placement-profile.md.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace treenail {

class PlacementProfile {
 public:
  // One kernel: a node, or several that were fused, of which the last gives the name.
  struct Entry {
    std::string kind;  // of devices: "CPU"
    std::string name;  // with the calls around, "a/b/"
    std::vector<std::string> fused;
    int64_t count = 0;  // of executions
    int64_t total_ns = 0;
  };

  struct DeviceFigures {
    int64_t flops_per_second = 0, bytes_per_second = 0, ns_per_node = 0;
  };
  struct LinkFigures {
    int64_t latency_ns = 0, bytes_per_second = 0;
  };
  // Devices of one host (any word, the same for all of them) slow each other: see contention.h.
  struct ContentionFigures {
    std::string host;
    int64_t thousandths = 1000;  // of the time that a work takes alone, while all others work
  };
  using Link = std::pair<std::string, std::string>;  // from a task to a task

  // Adds an execution. Errors: InvalidArgument for names that a file cannot hold, and a negative
  // time.
  void add(std::string_view kind, std::string_view name, std::span<const std::string> fused,
           int64_t ns);
  void end_run() { ++runs_; }

  // By the device's full name. Errors: InvalidArgument for a name that a file cannot hold, and
  // figures out of range.
  void set_device(std::string_view device, const DeviceFigures& figures);
  // Of a device that has figures. Errors: the same.
  void set_contention(std::string_view device, const ContentionFigures& figures);
  // Between tasks, "/job:worker/replica:0/task:1". Errors: the same.
  void set_link(const Link& link, const LinkFigures& figures);

  int64_t runs() const { return runs_; }
  // By kind, name and what was fused.
  std::vector<Entry> entries() const;
  const std::map<std::string, DeviceFigures>& devices() const { return devices_; }
  const std::map<std::string, ContentionFigures>& contention() const { return contention_; }
  const std::map<Link, LinkFigures>& links() const { return links_; }

  std::string to_text() const;
  // Errors: InvalidArgument, with the line, for what is no profile; DataLoss for one that was cut
  // short.
  static PlacementProfile from_text(std::string_view text);
  // Errors: as throw_file_error (io/file.h); from a file also as from_text, with the path.
  void save(const std::string& path) const;
  static PlacementProfile load(const std::string& path);

 private:
  class Reader;
  struct Sum {
    int64_t count = 0, total_ns = 0;
  };
  std::map<std::tuple<std::string, std::string, std::vector<std::string>>, Sum> sums_;
  std::map<std::string, DeviceFigures> devices_;
  std::map<std::string, ContentionFigures> contention_;  // by device
  std::map<Link, LinkFigures> links_;
  int64_t runs_ = 0;
};

}  // namespace treenail
