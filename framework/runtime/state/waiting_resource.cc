// SPDX-License-Identifier: Apache-2.0
// Who takes a request out of its line, under the lock, ends it: whoever serves, or the callback of
// its run's token. The callback is removed, without the lock, before the request is told its end
// and freed; a callback that comes too late finds the request ended and touches nothing else.
//
// Lock order: the resource's lock, then a token's. Nothing is told, and no callback waited for,
// with a lock held.
#include "framework/runtime/state/waiting_resource.h"

#include "framework/base/cancellation.h"
#include "framework/base/error.h"

namespace treenail {

WaitingResource::Request::~Request() = default;
WaitingResource::~WaitingResource() = default;

// The child of a fork has none of the runs that waited.
std::unique_lock<ForkMutex> WaitingResource::locked() {
  std::unique_lock<ForkMutex> lock(mutex_);
  const bool abandoned = mutex_.abandoned();
  if (abandoned) begin_state_anew();
  if (abandoned || generation_ != fork_generation()) {
    const size_t lines = lines_.size();
    begin_anew(lines_);
    lines_.resize(lines);
    generation_ = fork_generation();
  }
  return lock;
}

void WaitingResource::submit(int line, std::unique_ptr<Request> submitted) {
  Requests ended;
  const Finish finish{ended};
  const std::unique_lock lock = locked();
  Request& request = *submitted;
  Requests& place = lines_[static_cast<size_t>(line)];
  request.resource_ = IntrusivePtr<WaitingResource>(this);
  request.line_ = &place;
  request.place_ = place.insert(place.end(), std::move(submitted));
  try {
    request.admit();
  } catch (...) {
    return abandon(request, std::current_exception(), ended);
  }
  serve(ended);
  if (request.line_ == nullptr) return;
  try {
    request.cancellation_ = request.context_.token()->add_callback(cancelled, &request);
  } catch (...) {
    return abandon(request, std::current_exception(), ended);
  }
  if (request.cancellation_ == 0) cancel(request, ended);
}

// Lines are served in turn as long as one of them moves: each may wait for what another gives.
void WaitingResource::serve(Requests& ended) noexcept {
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t line = 0; line < lines_.size(); ++line) moved = serve_line(line, ended) || moved;
  }
}

bool WaitingResource::serve_line(size_t line, Requests& ended) noexcept {
  bool moved = false;
  Requests& requests = lines_[line];
  for (auto at = requests.begin(); at != requests.end();) {
    Request& request = **at++;  // its end takes it out of the line
    Progress progress = Progress::kNone;
    try {
      progress = request.attempt();
    } catch (...) {
      abandon(request, std::current_exception(), ended);
      moved = true;
      continue;
    }
    moved = moved || progress != Progress::kNone;
    if (progress == Progress::kEnded) {
      end(request, ended);
    } else if (line < ordered_) {
      break;
    }
  }
  return moved;
}

void WaitingResource::end(Request& request, Requests& ended) noexcept {
  ended.splice(ended.end(), *request.line_, request.place_);
  request.line_ = nullptr;
}

void WaitingResource::abandon(Request& request, std::exception_ptr error,
                              Requests& ended) noexcept {
  request.withdraw();
  request.error_ = std::move(error);
  end(request, ended);
}

// Its place in the line, and what it gives back, may be what others wait for.
void WaitingResource::cancel(Request& request, Requests& ended) noexcept {
  abandon(request, std::make_exception_ptr(treenail::cancelled("the operation was cancelled")),
          ended);
  serve(ended);
}

void WaitingResource::cancelled(void* argument) noexcept {
  Request& request = *static_cast<Request*>(argument);
  // The request may be freed by what it is told, and with it the last share of the resource.
  const IntrusivePtr<WaitingResource> self = request.resource_;
  Requests ended;
  const Finish finish{ended};
  const std::unique_lock lock = self->locked();
  if (request.line_ != nullptr) self->cancel(request, ended);
}

void WaitingResource::finish(Requests& ended) noexcept {
  while (!ended.empty()) {
    std::unique_ptr<Request> request = std::move(ended.front());
    ended.pop_front();
    request->context_.token()->remove_callback(request->cancellation_);
    const Done done = request->done_;
    std::exception_ptr error = std::move(request->error_);
    request.reset();  // its shares of values do not outlive the run
    if (error == nullptr) {
      done();
    } else {
      done.fail(std::move(error));
    }
  }
}

}  // namespace treenail
