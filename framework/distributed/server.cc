// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/server.h"

#include <array>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/distributed/master.h"
#include "framework/distributed/receives.h"
#include "framework/distributed/worker.h"

namespace treenail {
namespace {

// The request that a thread answers, for what polls while it runs.
class Answering {
 public:
  explicit Answering(const RpcAsked& asked)
      : before_(std::exchange(current, &asked)), interrupts_(poll) {}
  ~Answering() { current = before_; }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;

  static void poll() {
    if (current != nullptr && current->abandoned())
      throw cancelled("whoever asked for it has given it up");
  }

 private:
  static thread_local const RpcAsked* current;
  const RpcAsked* const before_;
  const InterruptScope interrupts_;
};
thread_local const RpcAsked* Answering::current = nullptr;

// "host" of "host:port".
std::string host_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos)
    throw invalid_argument("cannot listen on \"", address, "\"; needed is \"host:port\"");
  return address.substr(0, colon);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

std::string checked_address(const ServerOptions& options) {
  std::string address = options.listen;
  if (address.empty()) address = options.cluster.address(options.task);
  const std::string host = host_of(address);
  if (is_loopback(host) || options.plain_text) return address;
  throw Error(
      Code::kPermissionDenied,
      concat("refuses to listen on ", address, ": whoever reaches that port could run what ",
             "he likes here, and nothing on the way is encrypted. Listen on localhost, or ",
             "say plain_text where the network and all who are in it are trusted"));
}

// Requests by method, answered by a worker and a master.
class Services final : public RpcHandler {
 public:
  explicit Services(Worker& worker) : worker_(worker), master_(worker), receives_(worker) {}

  std::vector<RpcMethod> methods() const override {
    std::vector<RpcMethod> all;
    for (const Entry& entry : kEntries) all.push_back({entry.path, entry.deferred});
    return all;
  }

  void handle(size_t method, const Message& request, const RpcAsked& asked) override {
    (this->*kEntries[method].answer)(request, asked);
  }
  void cancelled(const RpcAsked& asked) override { receives_.cancelled(asked); }

 private:
  using AnswerFn = void (Services::*)(const Message&, const RpcAsked&);
  struct Entry {
    const char* path;
    AnswerFn answer;
    bool deferred = false;
  };
  static const std::array<Entry, 15> kEntries;

  template <class T>
  static T head(const Message& request) {
    return protocol::read<T>(request.fields());
  }

  // By a member of `who` that runs a plan, or a piece.
  template <class Who, class Run>
  static void answer_run(Who& who, Run run, const Message& request, const RpcAsked& asked) {
    const Answering scope(asked);
    RunOptions options;
    options.poll = Answering::poll;
    RunMetadata did;
    const std::vector<Tensor> values =
        (who.*run)(head<protocol::RunRequest>(request), request.tensors, options, did);
    asked.reply(protocol::write(protocol::reply_of(did)), values);
  }

  // --- The master's
  void open_session(const Message& request, const RpcAsked& asked) {
    const Answering scope(asked);
    asked.reply(protocol::write(master_.open_session(head<protocol::Settings>(request))));
  }
  void make_plan(const Message& request, const RpcAsked& asked) {
    const Answering scope(asked);
    const auto program = head<protocol::Program>(request);
    asked.reply(protocol::write(protocol::Handle{program.session, master_.make_plan(program)}));
  }
  void run(const Message& request, const RpcAsked& asked) {
    answer_run(master_, &Master::run, request, asked);
  }
  void forget_plan(const Message& request, const RpcAsked& asked) {
    master_.forget_plan(head<protocol::Handle>(request));
    asked.reply({});
  }
  void close_session(const Message& request, const RpcAsked& asked) {
    master_.close_session(head<protocol::Handle>(request).session);
    asked.reply({});
  }
  void list_devices(const Message&, const RpcAsked& asked) {
    const Answering scope(asked);
    asked.reply(protocol::write(protocol::SessionOpened{"", master_.devices()}));
  }
  void reset(const Message& request, const RpcAsked& asked) {
    const Answering scope(asked);
    master_.reset(head<protocol::ResetRequest>(request));
    asked.reply({});
  }

  // --- The worker's
  void get_status(const Message&, const RpcAsked& asked) {
    asked.reply(protocol::write(worker_.status()));
  }
  void register_piece(const Message& request, const RpcAsked& asked) {
    const auto program = head<protocol::Program>(request);
    asked.reply(
        protocol::write(protocol::Handle{program.session, worker_.register_piece(program)}));
  }
  void run_piece(const Message& request, const RpcAsked& asked) {
    answer_run(worker_, &Worker::run_piece, request, asked);
  }
  void forget_piece(const Message& request, const RpcAsked& asked) {
    worker_.forget_piece(head<protocol::Handle>(request));
    asked.reply({});
  }
  void receive(const Message& request, const RpcAsked& asked) {
    receives_.begin(head<protocol::ReceiveRequest>(request), asked);
  }
  void give_up_step(const Message& request, const RpcAsked& asked) {
    worker_.give_up_step(head<protocol::Handle>(request).number);
    asked.reply({});
  }
  void close_pieces(const Message& request, const RpcAsked& asked) {
    worker_.close_session(head<protocol::Handle>(request).session);
    asked.reply({});
  }
  void reset_state(const Message& request, const RpcAsked& asked) {
    worker_.reset(head<protocol::ResetRequest>(request));
    asked.reply({});
  }

  Worker& worker_;
  Master master_;
  Receives receives_;
};

const std::array<Services::Entry, 15> Services::kEntries = {{
    {protocol::master::kOpenSession, &Services::open_session},
    {protocol::master::kMakePlan, &Services::make_plan},
    {protocol::master::kRun, &Services::run},
    {protocol::master::kForgetPlan, &Services::forget_plan},
    {protocol::master::kCloseSession, &Services::close_session},
    {protocol::master::kListDevices, &Services::list_devices},
    {protocol::master::kReset, &Services::reset},
    {protocol::worker::kGetStatus, &Services::get_status},
    {protocol::worker::kRegisterPiece, &Services::register_piece},
    {protocol::worker::kRunPiece, &Services::run_piece},
    {protocol::worker::kForgetPiece, &Services::forget_piece},
    {protocol::worker::kReceive, &Services::receive, true},
    {protocol::worker::kGiveUpStep, &Services::give_up_step},
    {protocol::worker::kCloseSession, &Services::close_pieces},
    {protocol::worker::kReset, &Services::reset_state},
}};

}  // namespace

struct Server::Impl {
  explicit Impl(const ServerOptions& options)
      : address(checked_address(options)),
        worker({options.cluster, options.task, options.device_count, options.patience}),
        services(worker),
        listener(services, address, options.patience) {}

  const std::string address;
  Worker worker;
  Services services;
  RpcListener listener;
};

Server::Server(const ServerOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Server::~Server() = default;

int Server::port() const { return impl_->listener.port(); }
std::string Server::target() const {
  return concat("grpc://", host_of(impl_->address), ":", port());
}

}  // namespace treenail
