// SPDX-License-Identifier: Apache-2.0
// treenail-worker: one task of a cluster as a program, for those that run no Python: a parameter
// server, a worker of another machine. Manual page: docs/man/treenail-worker.1, which a test holds
// to --help.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/nearest_name.h"
#include "framework/distributed/server.h"
#include "framework/runtime/process_info.h"

namespace treenail {
namespace {

constexpr char kHelp[] =
    "Usage: treenail-worker --cluster=JOBS --job=NAME --task=N [option ...]\n"
    "\n"
    "Runs one task of a cluster: its devices and variables, for sessions that are opened\n"
    "with the target grpc://HOST:PORT of any of its tasks. Ends at SIGTERM or SIGINT.\n"
    "\n"
    "  --cluster=JOBS    every task's address, as ps=host:2222;worker=host1:2222,host2:2222\n"
    "  --job=NAME        this task's job ...\n"
    "  --task=N          ... and its number in it, from 0; may be left out of a job of one\n"
    "  --listen=ADDRESS  host:port to listen on instead of the task's own address\n"
    "  --plain-text      listen beyond this machine without encryption: whoever reaches\n"
    "                    the port can run what he likes here\n"
    "  --cpus=N          so many CPU devices, which share the machine's threads (1)\n"
    "  --keepalive=S     a peer that is silent for S seconds and then for as long again\n"
    "                    is lost (5)\n"
    "  --config=FILE     read options from lines like cluster = ps=host:2222; those of the\n"
    "                    command line come first\n"
    "  --check           say what would be open to whom, and end\n"
    "  --version         the version alone\n"
    "  --help            this text\n"
    "\n"
    "Exit status: 0, 1 when the server cannot run, 2 when the command line or the file is\n"
    "not understood.\n";

// What the command line or the file says wrong.
struct UsageError {
  std::string text;
};

struct Options {
  ServerOptions server;
  bool task_given = false;
  bool check = false;
};

constexpr std::string_view kValues[] = {"cluster", "job",       "task",  "listen",
                                        "cpus",    "keepalive", "config"};
constexpr std::string_view kSwitches[] = {"plain-text", "check"};

int number(std::string_view name, const std::string& text, int least) {
  size_t used = 0;
  int value = least - 1;
  try {
    value = std::stoi(text, &used);
  } catch (const std::exception&) {
  }
  if (used != text.size() || value < least)
    throw UsageError{concat(name, " is a number from ", least, ", not \"", text, "\"")};
  return value;
}

bool truth(std::string_view name, const std::string& text) {
  if (text == "yes" || text == "true") return true;
  if (text == "no" || text == "false") return false;
  throw UsageError{concat(name, " is yes or no, not \"", text, "\"")};
}

// By name, which is one of kValues or kSwitches; earlier ones stay.
class Settings {
 public:
  void add(const std::string& name, std::string value) {
    names_.push_back(name);
    values_.push_back(std::move(value));
  }
  void add_all(const Settings& others) {
    names_.insert(names_.end(), others.names_.begin(), others.names_.end());
    values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  }
  const std::string* find(std::string_view name) const {
    for (size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name) return &values_[i];
    return nullptr;
  }

 private:
  std::vector<std::string> names_, values_;
};

void check_name(std::string_view name, std::string_view where) {
  std::vector<std::string_view> known(std::begin(kValues), std::end(kValues));
  known.insert(known.end(), std::begin(kSwitches), std::end(kSwitches));
  for (const std::string_view each : known)
    if (each == name) return;
  throw UsageError{
      concat("\"", name, "\" ", where, " is not understood", did_you_mean(name, known))};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r").find(text.front()) != std::string_view::npos)
    text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  return text;
}

Settings read_file(const std::string& path) {
  Settings settings;
  std::ifstream file(path);
  if (!file) throw UsageError{concat("cannot read the file \"", path, "\"")};
  std::string line;
  for (int n = 1; std::getline(file, line); ++n) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    const size_t equals = text.find('=');
    const std::string where = concat("in line ", n, " of ", path);
    const std::string_view name = trimmed(text.substr(0, equals));
    check_name(name, where);
    if (equals == std::string_view::npos)
      throw UsageError{concat(where, " stands no \"=\": ", text)};
    settings.add(std::string(name), std::string(trimmed(text.substr(equals + 1))));
  }
  return settings;
}

Settings read_arguments(const std::vector<std::string_view>& arguments) {
  Settings settings;
  for (const std::string_view argument : arguments) {
    const bool option = argument.starts_with("--");
    const size_t equals = argument.find('=');
    const std::string_view name = option ? argument.substr(2, equals - 2) : argument;
    check_name(name, "on the command line");
    const bool is_switch =
        std::find(std::begin(kSwitches), std::end(kSwitches), name) != std::end(kSwitches);
    if (!option || is_switch != (equals == std::string_view::npos)) {
      throw UsageError{concat(argument, is_switch ? " takes no value" : " needs a value, --",
                              is_switch ? "" : name, is_switch ? "" : "=...")};
    }
    settings.add(std::string(name), is_switch ? "yes" : std::string(argument.substr(equals + 1)));
  }
  if (const std::string* path = settings.find("config")) settings.add_all(read_file(*path));
  return settings;
}

const std::string& needed(const Settings& settings, std::string_view name) {
  const std::string* found = settings.find(name);
  if (found == nullptr) throw UsageError{concat("--", name, " is needed")};
  return *found;
}

int task_number(const Settings& settings, const ServerOptions& server) {
  if (const std::string* text = settings.find("task")) return number("task", *text, 0);
  int tasks = 0;
  for (const auto& [task, address] : server.cluster.tasks()) tasks += task.job == server.task.job;
  if (tasks > 1)
    throw UsageError{concat("--task is needed: job ", server.task.job, " has ", tasks, " tasks")};
  return 0;
}

Options options_of(const Settings& settings) {
  Options options;
  ServerOptions& server = options.server;
  server.cluster = ClusterSpec::parse(needed(settings, "cluster"));
  server.task.job = needed(settings, "job");
  server.task.index = task_number(settings, server);
  if (const std::string* text = settings.find("listen")) server.listen = *text;
  if (const std::string* text = settings.find("plain-text"))
    server.plain_text = truth("plain-text", *text);
  if (const std::string* text = settings.find("cpus"))
    server.device_count["CPU"] = number("cpus", *text, 1);
  if (const std::string* text = settings.find("keepalive")) {
    server.patience.keepalive_ms = 1000 * int64_t{number("keepalive", *text, 1)};
    server.patience.keepalive_wait_ms = server.patience.keepalive_ms;
  }
  if (const std::string* text = settings.find("check")) options.check = truth("check", *text);
  return options;
}

// Of what --check prints.
std::string exposure(const Server& server, const ServerOptions& options) {
  return concat(
      "task     ", to_text(options.task), "\n", "target   ", server.target(), "\n", "open to  ",
      options.plain_text ? "whoever reaches the address, without a password and unencrypted\n"
                         : "the users and programs of this machine, without a password\n",
      "they can run any operation there is, and read and write files as this user can\n");
}

int run(const std::vector<std::string_view>& arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
    if (argument == "--version") return std::puts(library_version().c_str()) < 0 ? 1 : 0;
  }
  const Options options = options_of(read_arguments(arguments));
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // of all threads to come as well
  const Server server(options.server);
  if (options.check) return std::fputs(exposure(server, options.server).c_str(), stdout) < 0;
  std::printf("%s listens at %s\n", to_text(options.server.task).c_str(), server.target().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  return 0;
}

}  // namespace
}  // namespace treenail

int main(int argc, char** argv) {
  try {
    return treenail::run(std::vector<std::string_view>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const treenail::UsageError& error) {
    std::fprintf(stderr, "treenail-worker: %s; see treenail-worker --help\n", error.text.c_str());
    return 2;
  } catch (const treenail::Error& error) {
    std::fprintf(stderr, "treenail-worker: %s\n", error.message().c_str());
    return error.code() == treenail::Code::kInvalidArgument ||
                   error.code() == treenail::Code::kNotFound
               ? 2
               : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "treenail-worker: %s\n", error.what());
    return 1;
  }
}
