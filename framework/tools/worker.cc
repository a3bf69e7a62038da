// SPDX-License-Identifier: Apache-2.0
// treenail-worker: one task of a cluster as a program, for those that run no Python: a parameter
// server, a worker of another machine. Manual page: docs/man/treenail-worker.1, which a test holds
// to --help.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/nearest_name.h"
#include "framework/base/settings_file.h"
#include "framework/capi/load_plugin.h"
#include "framework/distributed/credentials.h"
#include "framework/distributed/server.h"
#include "framework/op/op_registry.h"
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
    "  --cpus=N          so many CPU devices, which share the machine's threads (1)\n"
    "  --keepalive=S     a peer that is silent for S seconds and then for as long again\n"
    "                    is lost (5)\n"
    "  --config=FILE     read options from lines like cluster = ps=host:2222; those of the\n"
    "                    command line come first\n"
    "\n"
    "Who may use it. Without a certificate it listens on this machine alone, for all who are\n"
    "on it.\n"
    "  --certificate=F   its certificates in PEM, its own first: all is encrypted\n"
    "  --key=F           the key of that, which nobody else can read\n"
    "  --authority=F     certificates of those who sign what clients and other tasks show\n"
    "  --revoked=DIR     lists of revoked certificates, named as by openssl rehash\n"
    "  --token-file=F    lines NAME TOKEN, the task's own first, which nobody else can read:\n"
    "                    whoever shows one needs no certificate\n"
    "  --open-to=NAMES   only these clients, as NAME,NAME: a certificate's first alternative\n"
    "                    name, or a token's (all who are known)\n"
    "  --plain-text      listen beyond this machine without a certificate: whoever reaches\n"
    "                    the port can use it\n"
    "\n"
    "What they may do.\n"
    "  --allow-path=DIRS operations may read and write files below these, as /a,/b (nowhere)\n"
    "  --allow-ops=NAMES operations that reach beyond the session, as Print,NAME (none)\n"
    "  --plugin=FILES    libraries with operations and kernels, as /a.so,/b.so, besides those\n"
    "                    of TREENAIL_PLUGIN_PATH; each operation needs --allow-ops as well\n"
    "  --max-sessions=N  open at once, of each client (1000)\n"
    "  --max-plans=N     sets of feeds, fetches and targets of one session (1000)\n"
    "  --max-partial-runs=N   of each client, that have not ended (1000)\n"
    "  --max-nodes=N     operations that one of them needs (1000000)\n"
    "  --max-memory-bytes=N   that a step plans to hold here (no limit)\n"
    "  --max-held-bytes=N     that a client holds here at once, with variables and queues (four\n"
    "                    fifths of the process's where clients are told apart, else no limit)\n"
    "  --max-step-seconds=N   that a step takes (no limit)\n"
    "  --max-idle-seconds=N   after which an unused session may be closed (86400)\n"
    "  --max-message-bytes=N  of one request (17179869184)\n"
    "\n"
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
  std::vector<std::string> plugins;
  bool check = false;
};

constexpr std::string_view kSwitches[] = {"plain-text", "check"};

// All that has a value.
const std::vector<std::string>& value_names() {
  static const auto* const kNames = [] {
    auto* const names = new std::vector<std::string>{
        "cluster", "job",         "task",      "listen",    "cpus",    "keepalive",
        "config",  "certificate", "key",       "authority", "revoked", "token-file",
        "open-to", "allow-path",  "allow-ops", "plugin"};
    for (const std::string_view limit : Limits::names()) names->push_back(concat("max-", limit));
    return names;
  }();
  return *kNames;
}

template <class Number = int>
Number number(std::string_view name, const std::string& text, Number least) {
  size_t used = 0;
  int64_t value = least - 1;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
  }
  if (used != text.size() || value < least || value > std::numeric_limits<Number>::max())
    throw UsageError{concat(name, " is a number from ", least, ", not \"", text, "\"")};
  return static_cast<Number>(value);
}

bool truth(std::string_view name, const std::string& text) {
  if (text == "yes" || text == "true") return true;
  if (text == "no" || text == "false") return false;
  throw UsageError{concat(name, " is yes or no, not \"", text, "\"")};
}

// By name, which is one of value_names() or kSwitches; earlier ones stay.
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
  std::vector<std::string_view> known(value_names().begin(), value_names().end());
  known.insert(known.end(), std::begin(kSwitches), std::end(kSwitches));
  for (const std::string_view each : known)
    if (each == name) return;
  throw UsageError{
      concat("\"", name, "\" ", where, " is not understood", did_you_mean(name, known))};
}

Settings read_file(const std::string& path) {
  Settings settings;
  for (const Setting& line : read_settings(path)) {
    check_name(line.name, line.where);
    settings.add(line.name, line.value);
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

// "a,b" as its parts.
std::vector<std::string> list(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Who may use the server, and what they may do.
void set_access(const Settings& settings, ServerOptions& server) {
  CredentialFiles files;
  bool any = false;
  for (const char* const name : {"certificate", "key", "authority", "revoked", "token-file"}) {
    const std::string* const file = settings.find(name);
    if (file == nullptr) continue;
    files.set(name, *file);
    any = true;
  }
  if (any) server.credentials = std::make_shared<const Credentials>(std::move(files));
  if (const std::string* text = settings.find("open-to")) server.open_to = list(*text);
  if (const std::string* text = settings.find("allow-path"))
    server.access.allow_paths = list(*text);
  if (const std::string* text = settings.find("allow-ops")) server.access.allow_ops = list(*text);
  for (const std::string_view limit : Limits::names()) {
    const std::string name = concat("max-", limit);
    if (const std::string* text = settings.find(name))
      server.limits.set(limit, number<int64_t>(name, *text, 0));
  }
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
  set_access(settings, server);
  if (const std::string* text = settings.find("plugin")) options.plugins = list(*text);
  if (const std::string* text = settings.find("check")) options.check = truth("check", *text);
  return options;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += concat(text.empty() ? "" : ", ", part);
  return text;
}

std::string limit_text(int64_t value) { return value == 0 ? "none" : concat(value); }

std::string callers_text(const ServerOptions& options) {
  if (options.credentials == nullptr) {
    return options.plain_text ? "whoever reaches the address, without a password and unencrypted"
                              : "the users and programs of this machine, without a password";
  }
  const CredentialFiles& files = options.credentials->files();
  std::string text = options.open_to.empty() ? "all" : joined(options.open_to);
  text += " with ";
  if (!files.authority.empty()) text += concat("a certificate that is signed by ", files.authority);
  if (!files.authority.empty() && !files.token_file.empty()) text += " or ";
  if (!files.token_file.empty()) text += concat("a token of ", files.token_file);
  return text + "; encrypted";
}

// Before there is a server, which wants to know the operations that it is to allow.
void load_plugins(const std::vector<std::string>& paths) {
  load_environment_plugins();
  for (const std::string& path : paths) load_plugin(path);
}

// The operations that reach further than the session, as far as clients may run them, or not. What
// joins the pieces of a graph ("_Send") is none that a client could ask for.
std::string reaching(const AccessRules& access, bool allowed) {
  std::string names;
  for (const OpDef* op : OpRegistry::instance().all()) {
    if (op->host_access == HostAccess::kNone || op->name.starts_with('_')) continue;
    if (access.allow(*op) == allowed) names += concat(names.empty() ? "" : " ", op->name);
  }
  return names.empty() ? "none" : names;
}

// Of what --check prints.
std::string exposure(const Server& server, const Options& given) {
  const ServerOptions& options = given.server;
  const Limits& limits = options.limits;
  const std::string paths = joined(options.access.allow_paths);
  return concat(
      "task     ", to_text(options.task), "\n", "target   ", server.target(), "\n", "open to  ",
      callers_text(options), "\n", "files    ", paths.empty() ? "none" : concat("below ", paths),
      "\n", "plugins  ", given.plugins.empty() ? "none" : joined(given.plugins), "\n",
      "may run  what computes and keeps state; of what reaches further: ",
      reaching(options.access, true), "\n", "refused  ", reaching(options.access, false), "\n",
      "limits   sessions ", limits.sessions, ", plans ", limits.plans, ", partial runs ",
      limits.partial_runs, ", nodes ", limits.nodes, ", memory ", limit_text(limits.memory_bytes),
      ", held ", limit_text(limits.most_held(options.credentials != nullptr)), ", step ",
      limit_text(limits.step_seconds), ", idle ", limits.idle_seconds, ", message ",
      limits.message_bytes, "\n");
}

int run(const std::vector<std::string_view>& arguments) {
  for (const std::string_view argument : arguments) {
    if (argument == "--help" || argument == "-h") return std::fputs(kHelp, stdout) < 0 ? 1 : 0;
    if (argument == "--version") return std::puts(library_version().c_str()) < 0 ? 1 : 0;
  }
  const Options options = options_of(read_arguments(arguments));
  load_plugins(options.plugins);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // of all threads to come as well
  const Server server(options.server);
  if (options.check) return std::fputs(exposure(server, options).c_str(), stdout) < 0;
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
