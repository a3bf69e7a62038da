// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/server.h"

#include <array>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/random_token.h"
#include "framework/distributed/callers.h"
#include "framework/distributed/master.h"
#include "framework/distributed/own_servers.h"
#include "framework/distributed/receives.h"
#include "framework/distributed/receives_some.h"
#include "framework/distributed/server_address.h"
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

std::string address_of(const ServerOptions& options) {
  const std::string& address =
      options.listen.empty() ? options.cluster.address(options.task) : options.listen;
  return listening_address(address, options.credentials != nullptr, options.plain_text);
}

// Callers have to be known, or there is no use in encryption.
void check_credentials(const Credentials* credentials) {
  if (credentials == nullptr) return;
  const CredentialFiles& files = credentials->files();
  if (files.certificate.empty()) throw invalid_argument("a server needs a certificate and its key");
  if (files.authority.empty() && files.token_file.empty()) {
    throw invalid_argument(
        "a server with a certificate needs to know its callers: by certificates that an authority "
        "has signed, or by tokens (token-file)");
  }
}

// Requests by method, answered by a worker and a master.
class Services final : public RpcHandler {
 public:
  Services(Worker& worker, const ServerOptions& options, const std::string& secret)
      : worker_(worker),
        secret_(secret),
        master_(worker, secret),
        receives_(worker),
        some_(worker),
        admission_(options.cluster, options.credentials, options.open_to) {}

  Caller admit(std::span<const std::string_view> names, std::string_view token) override {
    return admission_.admit(names, token);
  }
  void check_method(size_t method, const Caller& caller) override {
    if (kEntries[method].whose == Whose::kAll || caller.is_task) return;
    throw error_of(Code::kPermissionDenied,
                   {kEntries[method].path, " is for the tasks of the cluster alone, and \"",
                    caller.identity, "\" is none"});
  }

  std::vector<RpcMethod> methods() const override {
    std::vector<RpcMethod> all;
    for (const Entry& entry : kEntries) all.push_back({entry.path, entry.deferred});
    return all;
  }

  void handle(size_t method, const Caller& caller, const Message& request,
              const RpcAsked& asked) override {
    (this->*kEntries[method].answer)({caller, request, asked});
  }
  void cancelled(const RpcAsked& asked) override {
    receives_.cancelled(asked);
    some_.cancelled(asked);
  }

 private:
  struct Request {
    const Caller& caller;
    const Message& message;
    const RpcAsked& asked;
    template <class T>
    T head() const {
      return protocol::read<T>(message.fields());
    }
  };
  using AnswerFn = void (Services::*)(const Request&);
  enum class Whose { kAll, kTasks };  // who may ask
  struct Entry {
    const char* path;
    AnswerFn answer;
    Whose whose;
    bool deferred = false;
  };
  static const std::array<Entry, 21> kEntries;

  // By `run`, of a plan or a piece.
  template <class Run>
  static void answer_run(const Request& request, Run run) {
    const Answering scope(request.asked);
    RunOptions options;
    options.poll = Answering::poll;
    RunMetadata did;
    const auto wanted = request.head<protocol::RunRequest>();
    options.trace = wanted.trace;
    const std::vector<Tensor> values = run(wanted, options, did);
    request.asked.reply(protocol::write(protocol::reply_of(std::move(did))), values);
  }

  static RunOptions polled(const protocol::RunRequest& request) {
    RunOptions options;
    options.poll = Answering::poll;
    options.timeout_ms = request.timeout_ms;
    return options;
  }

  // --- The master's
  void open_session(const Request& request) {
    const Answering scope(request.asked);
    request.asked.reply(
        protocol::write(master_.open_session(request.caller, request.head<protocol::Settings>())));
  }
  void make_plan(const Request& request) {
    const Answering scope(request.asked);
    const auto program = request.head<protocol::Program>();
    request.asked.reply(protocol::write(
        protocol::Handle{program.session, master_.make_plan(request.caller, program)}));
  }
  void run(const Request& request) {
    answer_run(request, [&](const auto& wanted, const RunOptions& options, RunMetadata& did) {
      return master_.run(request.caller, wanted, request.message.tensors, options, did);
    });
  }
  void partial_run_setup(const Request& request) {
    const Answering scope(request.asked);
    const auto wanted = request.head<protocol::RunRequest>();
    const uint64_t run = master_.begin_parts(request.caller, wanted, polled(wanted));
    request.asked.reply(protocol::write(protocol::Handle{wanted.session, run}));
  }
  void partial_run(const Request& request) {
    const Answering scope(request.asked);
    const auto part = request.head<protocol::RunRequest>();
    protocol::RunReply did;
    const std::vector<Tensor> values =
        master_.run_part(request.caller, part, request.message.tensors, polled(part), did);
    request.asked.reply(protocol::write(did), values);
  }
  void end_partial_run(const Request& request) {
    master_.end_parts(request.caller, request.head<protocol::Handle>());
    request.asked.reply({});
  }
  void forget_plan(const Request& request) {
    master_.forget_plan(request.caller, request.head<protocol::Handle>());
    request.asked.reply({});
  }
  void close_session(const Request& request) {
    master_.close_session(request.caller, request.head<protocol::Handle>().session);
    request.asked.reply({});
  }
  void list_devices(const Request& request) {
    const Answering scope(request.asked);
    request.asked.reply(protocol::write(protocol::SessionOpened{"", master_.devices()}));
  }
  void reset(const Request& request) {
    const Answering scope(request.asked);
    master_.reset(request.caller, request.head<protocol::ResetRequest>());
    request.asked.reply({});
  }

  // --- The worker's
  void get_status(const Request& request) {
    request.asked.reply(protocol::write(worker_.status(request.head<protocol::ReceiveRequest>())));
  }
  void register_piece(const Request& request) {
    const auto program = request.head<protocol::Program>();
    const bool own = are_equal_secrets(program.secret, secret_);
    const auto trust = own ? Worker::Trust::kOwnProcess : Worker::Trust::kOthers;
    request.asked.reply(
        protocol::write(protocol::Handle{program.session, worker_.register_piece(program, trust)}));
  }
  void run_piece(const Request& request) {
    answer_run(request, [&](const auto& wanted, const RunOptions& options, RunMetadata& did) {
      return worker_.run_piece(wanted, request.message.tensors, options, did);
    });
  }
  void get_part_needs(const Request& request) {
    const Answering scope(request.asked);
    request.asked.reply(
        protocol::write(worker_.part_needs(request.head<protocol::Handle>(), polled({}))));
  }
  void end_piece_run(const Request& request) {
    worker_.end_run(request.head<protocol::RunRequest>());
    request.asked.reply({});
  }
  void forget_piece(const Request& request) {
    worker_.forget_piece(request.head<protocol::Handle>());
    request.asked.reply({});
  }
  void receive(const Request& request) {
    receives_.begin(request.head<protocol::ReceiveRequest>(), request.asked);
  }
  void receive_some(const Request& request) {
    some_.begin(request.head<protocol::ReceiveSomeRequest>(), request.asked);
  }
  void give_up_step(const Request& request) {
    worker_.give_up_step(request.head<protocol::Handle>().number);
    request.asked.reply({});
  }
  void close_pieces(const Request& request) {
    worker_.close_session(request.head<protocol::Handle>().session);
    request.asked.reply({});
  }
  void reset_state(const Request& request) {
    worker_.reset(request.head<protocol::ResetRequest>());
    request.asked.reply({});
  }

  Worker& worker_;
  const std::string secret_;
  Master master_;
  Receives receives_;
  ReceivesSome some_;
  const Admission admission_;
};

const std::array<Services::Entry, 21> Services::kEntries = {{
    {protocol::master::kOpenSession, &Services::open_session, Whose::kAll},
    {protocol::master::kMakePlan, &Services::make_plan, Whose::kAll},
    {protocol::master::kRun, &Services::run, Whose::kAll},
    {protocol::master::kPartialRunSetup, &Services::partial_run_setup, Whose::kAll},
    {protocol::master::kPartialRun, &Services::partial_run, Whose::kAll},
    {protocol::master::kEndPartialRun, &Services::end_partial_run, Whose::kAll},
    {protocol::master::kForgetPlan, &Services::forget_plan, Whose::kAll},
    {protocol::master::kCloseSession, &Services::close_session, Whose::kAll},
    {protocol::master::kListDevices, &Services::list_devices, Whose::kAll},
    {protocol::master::kReset, &Services::reset, Whose::kAll},
    {protocol::worker::kGetStatus, &Services::get_status, Whose::kTasks},
    {protocol::worker::kRegisterPiece, &Services::register_piece, Whose::kTasks},
    {protocol::worker::kRunPiece, &Services::run_piece, Whose::kTasks},
    {protocol::worker::kGetPartNeeds, &Services::get_part_needs, Whose::kTasks},
    {protocol::worker::kEndPartialRun, &Services::end_piece_run, Whose::kTasks},
    {protocol::worker::kForgetPiece, &Services::forget_piece, Whose::kTasks},
    {protocol::worker::kReceive, &Services::receive, Whose::kTasks, true},
    {protocol::worker::kReceiveSome, &Services::receive_some, Whose::kTasks, true},
    {protocol::worker::kGiveUpStep, &Services::give_up_step, Whose::kTasks},
    {protocol::worker::kCloseSession, &Services::close_pieces, Whose::kTasks},
    {protocol::worker::kReset, &Services::reset_state, Whose::kTasks},
}};

}  // namespace

struct Server::Impl {
  explicit Impl(const ServerOptions& options)
      : address(address_of(options)),
        secret(random_token()),
        worker({options.cluster, options.task, options.device_count, options.patience,
                options.credentials, options.access, options.limits,
                mpi_of_process(options.cluster.tasks().size(), options.credentials != nullptr)}),
        services(worker, options, secret),
        listener(services, address,
                 {options.patience, options.limits.message_bytes, true, options.credentials}) {
    if (options.credentials == nullptr && !is_loopback(host_of(address))) return;
    own = std::make_unique<OwnServerEntry>(reached_at(), OwnServer{secret, options.credentials});
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::string reached_at() const { return concat(host_of(address), ":", listener.port()); }

  const std::string address;
  const std::string secret;
  Worker worker;
  Services services;
  RpcListener listener;
  std::unique_ptr<OwnServerEntry> own;
};

Server::Server(const ServerOptions& options) {
  check_credentials(options.credentials.get());
  impl_ = std::make_unique<Impl>(options);
}
Server::~Server() = default;

std::vector<Transport> Server::transports() const { return impl_->worker.transports(); }
std::map<std::string, int64_t> Server::held_bytes() const { return impl_->worker.held_bytes(); }
int Server::port() const { return impl_->listener.port(); }
std::string Server::target() const { return concat("grpc://", impl_->reached_at()); }

}  // namespace treenail
