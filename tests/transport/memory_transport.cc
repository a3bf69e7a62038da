// SPDX-License-Identifier: Apache-2.0
// Locks are many and small, so that ThreadSanitizer does not take what a transport happens to order
// for an order between those who use it. None is held where a function of the other side is called.
#include "tests/transport/memory_transport.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "build_info.h"
#include "tests/transport/chosen_fates.h"
#include "tests/transport/delayed_threads.h"

namespace treenail {
namespace {

struct Passage;
using Clock = std::chrono::steady_clock;
using Slices = std::vector<std::string>;

using test::run_after;
using test::run_if_still_there;

constexpr int32_t kCancelled = 1, kDeadlineExceeded = 4, kUnimplemented = 12, kUnavailable = 14;
constexpr std::chrono::milliseconds kPollPeriod{50}, kReconnect{20};

Slices copied(const RpcSlice* slices, size_t count) {
  Slices made;
  for (size_t i = 0; i < count; ++i) {
    made.emplace_back(static_cast<const char*>(slices[i].data), slices[i].bytes);
    if (slices[i].release != nullptr) slices[i].release(slices[i].owner);
  }
  return made;
}

std::vector<RpcView> views_of(const Slices& slices) {
  std::vector<RpcView> views;
  for (const std::string& slice : slices) views.push_back({slice.data(), slice.size()});
  return views;
}

// An address without its host, of which there is but one.
std::string port_of(const std::string& address) { return address.substr(address.rfind(':') + 1); }

}  // namespace

struct RpcCall {
  Passage* passage;
};

struct RpcServer {
  RpcService service;
  std::vector<std::string> paths;
  std::vector<bool> deferred;  // by path
  std::string port;
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::set<std::shared_ptr<Passage>> running;
  int used = 0;  // by threads that call its service
  bool stopped = false;
};

struct Connection : std::enable_shared_from_this<Connection> {
  std::string port;
  std::chrono::milliseconds patience{0};
  std::mutex mutex;  // guards what follows
  std::set<std::shared_ptr<Passage>> open;
  bool silent = false;

  // Whether it is, or is from here on.
  bool is_silent(bool from_here_on);
};

struct RpcChannel {
  std::shared_ptr<Connection> connection;
};

struct RpcPending {
  std::shared_ptr<Passage> passage;
};

namespace {

// Servers by port, and all connections.
struct Network {
  std::mutex mutex;  // guards what follows
  std::vector<std::shared_ptr<RpcServer>> servers;
  std::map<std::string, std::shared_ptr<RpcServer>> reached;
  std::vector<std::weak_ptr<Connection>> connections;
  int last_port = 0;
};

Network& network() {
  static auto* const kNetwork = new Network;
  return *kNetwork;
}

std::shared_ptr<RpcServer> server_at(const std::string& port) {
  const std::lock_guard lock(network().mutex);
  const auto found = network().reached.find(port);
  return found == network().reached.end() ? nullptr : found->second;
}

void cut(const std::shared_ptr<Connection>& connection, const std::string& why);

// A call's way there and back. The client is answered once, and so is the server.
struct Passage : std::enable_shared_from_this<Passage> {
  Passage(const std::shared_ptr<Connection>& c, const RpcRequest& wanted, const RpcAnswer* told)
      : connection(c),
        path(wanted.path),
        wait_for_ready(wanted.wait_for_ready),
        request(copied(wanted.slices, wanted.num_slices)),
        answer(told == nullptr ? RpcAnswer{} : *told) {}

  void begin(int64_t timeout_ms) {
    const auto self = shared_from_this();
    {
      const std::lock_guard lock(connection->mutex);
      connection->open.insert(self);
    }
    if (timeout_ms > 0) {
      const auto late = [weak = weak_from_this()] {
        if (const auto found = weak.lock())
          found->finish(kDeadlineExceeded, false, "the deadline has passed", {});
      };
      run_if_still_there(std::chrono::milliseconds(timeout_ms), late);
    }
    travel(false, [self] { self->arrive(); });
  }

  // To the server, or back from it.
  void travel(bool reply, std::function<void()> arrive) {
    const test::Fates::Fate fate = test::chosen_fate(path, reply);
    const auto self = shared_from_this();
    run_after(fate.after, [self, kind = fate.kind, arrive = std::move(arrive)] {
      using Kind = test::Fates::Fate::Kind;
      if (kind == Kind::kCut) return cut(self->connection, "the connection was cut");
      if (self->connection->is_silent(kind == Kind::kSilent)) return;
      arrive();
    });
  }

  void arrive() {
    const std::shared_ptr<RpcServer> found = server_at(connection->port);
    if (found == nullptr) return not_there();
    const auto at = std::ranges::find(found->paths, path);
    if (at == found->paths.end()) return finish(kUnimplemented, false, "no such method", {});
    const auto method = static_cast<size_t>(at - found->paths.begin());
    {
      const std::lock_guard lock(found->mutex);
      if (found->stopped) return run_after({}, [self = shared_from_this()] { self->not_there(); });
      const std::lock_guard own(mutex);
      if (answered) return;
      server = found;
      deferred = found->deferred[method];
      found->running.insert(shared_from_this());
      ++found->used;
    }
    const std::vector<RpcView> views = views_of(request);
    found->service.handle(found->service.self, method, {}, &call, views.data(), views.size());
    left(*found);
  }

  void not_there() {
    if (!wait_for_ready) return finish(kUnavailable, false, "nobody listens there", {});
    run_after(kReconnect, [self = shared_from_this()] {
      if (!self->abandoned) self->arrive();
    });
  }

  // The server's answer.
  void reply(int32_t code, std::string text, Slices slices) {
    std::shared_ptr<RpcServer> from;
    {
      const std::lock_guard lock(mutex);
      from = server;
    }
    travel(true, [self = shared_from_this(), code, text = std::move(text),
                  slices = std::move(slices)] { self->finish(code, true, text, slices); });
    const std::lock_guard lock(from->mutex);
    from->running.erase(shared_from_this());
    from->changed.notify_all();
  }

  // The client's, whoever makes it.
  void finish(int32_t what, bool theirs, const std::string& text, const Slices& slices) {
    const auto self = shared_from_this();
    {
      const std::lock_guard lock(mutex);
      if (std::exchange(answered, true)) return;
      abandoned = true;
      result = {what, theirs, text, slices};
      changed.notify_all();
    }
    {
      const std::lock_guard lock(connection->mutex);
      connection->open.erase(self);
    }
    tell_server();
    if (answer.answered != nullptr) give(answer);
  }

  void give(const RpcAnswer& to) const {
    const std::vector<RpcView> views = views_of(result.slices);
    to.answered(to.self, result.code, result.theirs, result.text.data(), result.text.size(),
                result.code == 0 ? views.data() : nullptr, result.code == 0 ? views.size() : 0);
  }

  // That nobody waits any more, where it has not answered yet.
  void tell_server() {
    std::shared_ptr<RpcServer> there;
    {
      const std::lock_guard lock(mutex);
      if (deferred) there = server;
    }
    if (there == nullptr) return;
    {
      const std::lock_guard lock(there->mutex);
      if (!there->running.contains(shared_from_this())) return;
      ++there->used;
    }
    there->service.cancelled(there->service.self, &call);
    left(*there);
  }

  static void left(RpcServer& from) {
    const std::lock_guard lock(from.mutex);
    --from.used;
    from.changed.notify_all();
  }

  struct Result {
    int32_t code = 0;
    bool theirs = false;
    std::string text;
    Slices slices;
  };

  const std::shared_ptr<Connection> connection;
  const std::string path;
  const bool wait_for_ready;
  const Slices request;
  const RpcAnswer answer;  // empty where somebody waits
  RpcCall call{this};
  std::atomic<bool> abandoned{false};  // nobody waits for an answer
  std::mutex mutex;                    // guards what follows
  std::condition_variable changed;
  std::shared_ptr<RpcServer> server;
  bool deferred = false;  // by the server
  Result result;
  bool answered = false;
};

void cut(const std::shared_ptr<Connection>& connection, const std::string& why) {
  std::set<std::shared_ptr<Passage>> lost;
  {
    const std::lock_guard lock(connection->mutex);
    connection->silent = false;
    lost = connection->open;
  }
  for (const std::shared_ptr<Passage>& each : lost) each->finish(kUnavailable, false, why, {});
}

}  // namespace

bool Connection::is_silent(bool from_here_on) {
  const std::lock_guard lock(mutex);
  if (silent || !from_here_on) return silent;
  silent = true;
  run_after(patience, [self = shared_from_this()] { cut(self, "the keep-alive has run out"); });
  return true;
}

namespace {

// --- The functions of the table ------------------------------------------------------------------

RpcServer* serve(const RpcServerOptions* options, const RpcService* service, RpcStatus* status) {
  auto made = std::make_shared<RpcServer>();
  made->service = *service;
  for (size_t i = 0; i < service->num_methods; ++i) {
    made->paths.emplace_back(service->methods[i].path);
    made->deferred.push_back(service->methods[i].deferred);
  }
  Network& all = network();
  const std::lock_guard lock(all.mutex);
  if (all.reached.empty()) test::choose_fates_of_environment();
  made->port = port_of(options->address);
  if (made->port == "0") made->port = std::to_string(++all.last_port);
  if (!all.reached.emplace(made->port, made).second) {
    set_status(status, kUnavailable,
               std::string("cannot listen on ") + options->address + ": it is taken");
    return nullptr;
  }
  status->code = 0;
  all.servers.push_back(made);
  return made.get();
}

int32_t port(const RpcServer* server) { return std::stoi(server->port); }

std::vector<std::shared_ptr<Connection>> connections_to(const std::string& port) {
  std::vector<std::shared_ptr<Connection>> found;
  const std::lock_guard lock(network().mutex);
  std::erase_if(network().connections, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : network().connections) {
    const auto each = weak.lock();
    if (each != nullptr && each->port == port) found.push_back(each);
  }
  return found;
}

void stop(RpcServer* server, int64_t /*grace_ms*/) {
  {
    const std::lock_guard lock(network().mutex);
    const auto at = network().reached.find(server->port);
    if (at != network().reached.end() && at->second.get() == server) network().reached.erase(at);
  }
  std::set<std::shared_ptr<Passage>> running;
  {
    const std::lock_guard lock(server->mutex);
    server->stopped = true;
    running = server->running;
  }
  for (const auto& each : running) each->finish(kUnavailable, false, "the server has ended", {});
  {
    std::unique_lock lock(server->mutex);
    server->changed.wait(lock, [&] { return server->running.empty() && server->used == 0; });
  }
  const std::lock_guard lock(network().mutex);
  std::erase_if(network().servers, [&](const auto& each) { return each.get() == server; });
}

void reply(RpcCall* call, const RpcSlice* slices, size_t num_slices) {
  call->passage->reply(0, "", copied(slices, num_slices));
}

void refuse(RpcCall* call, int32_t code, const char* text, size_t text_bytes) {
  call->passage->reply(code, {text, text_bytes}, {});
}

bool abandoned(const RpcCall* call) { return call->passage->abandoned; }

RpcChannel* connect(const RpcChannelOptions* options, RpcStatus* status) {
  auto made = std::make_shared<Connection>();
  made->port = port_of(options->address);
  made->patience = std::chrono::milliseconds(options->keepalive_ms + options->keepalive_wait_ms);
  status->code = 0;
  const std::lock_guard lock(network().mutex);
  network().connections.push_back(made);
  return new RpcChannel{made};
}

void disconnect(RpcChannel* channel) { delete channel; }

void call(RpcChannel* channel, const RpcRequest* request, const RpcAnswer* answer,
          bool (*poll)(void*), void* poll_argument) {
  const auto passage = std::make_shared<Passage>(channel->connection, *request, nullptr);
  passage->begin(request->timeout_ms);
  std::unique_lock lock(passage->mutex);
  while (!passage->changed.wait_for(lock, kPollPeriod, [&] { return passage->answered; })) {
    lock.unlock();
    if (poll(poll_argument)) passage->finish(kCancelled, false, "cancelled", {});
    lock.lock();
  }
  lock.unlock();
  passage->give(*answer);
}

RpcPending* start(RpcChannel* channel, const RpcRequest* request, const RpcAnswer* answer) {
  auto passage = std::make_shared<Passage>(channel->connection, *request, answer);
  passage->begin(request->timeout_ms);
  return new RpcPending{std::move(passage)};
}

void cancel(RpcPending* pending) {
  run_after({},
            [passage = pending->passage] { passage->finish(kCancelled, false, "cancelled", {}); });
}

void forget(RpcPending* pending) { delete pending; }

void cut_off(const char* address) {
  const std::string port = port_of(address);
  {
    const std::lock_guard lock(network().mutex);
    network().reached.erase(port);
  }
  for (const auto& each : connections_to(port)) cut(each, "the task was killed");
}

bool settle() { return test::threads_end(std::chrono::seconds(30)); }

test::MemoryTransport table() {
  test::MemoryTransport made{};
  RpcApi& rpc = made.rpc;
  rpc.header = {sizeof(RpcApi), build_info::kVersion};
  rpc.serve = serve;
  rpc.port = port;
  rpc.stop = stop;
  rpc.reply = reply;
  rpc.refuse = refuse;
  rpc.abandoned = abandoned;
  rpc.connect = connect;
  rpc.disconnect = disconnect;
  rpc.call = call;
  rpc.start = start;
  rpc.cancel = cancel;
  rpc.forget = forget;
  made.set_fates = test::choose_fates;
  made.cut_off = cut_off;
  made.settle = settle;
  return made;
}

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter(void);

const void* treenail_adapter(void) {
  static const treenail::test::MemoryTransport kTransport = treenail::table();
  return &kTransport;
}
