// Ranks that are threads of this process: the same operations without any engine.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "distributed/communicator.h"

namespace heddle::distributed {

class ThreadTransport final : public Transport {
 public:
  struct Mail {
    std::mutex mutex;
    std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> waiting;  // from, to
    std::int64_t bytes = 0;  // that were sent, by all
  };

  ThreadTransport(std::shared_ptr<Mail> mail, int rank, int size)
      : mail_(std::move(mail)), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string engine() const override { return "threads"; }

  void begin(std::span<const Bytes> sends, std::span<const MutableBytes> receives) override {
    const std::scoped_lock lock(mail_->mutex);
    receives_.assign(receives.begin(), receives.end());
    awaited_.clear();
    for (int i = 0; i < size_; ++i) {
      const Bytes bytes = sends[static_cast<std::size_t>(i)];
      if (i == rank_) continue;
      if (!bytes.empty()) {
        mail_->waiting[{rank_, i}].emplace_back(bytes.begin(), bytes.end());
        mail_->bytes += static_cast<std::int64_t>(bytes.size());
      }
      if (!receives[static_cast<std::size_t>(i)].empty()) awaited_.push_back(i);
    }
  }

  bool test() override {
    const std::scoped_lock lock(mail_->mutex);
    std::erase_if(awaited_, [this](int from) {
      auto& queue = mail_->waiting[{from, rank_}];
      if (queue.empty()) return false;
      const MutableBytes to = receives_[static_cast<std::size_t>(from)];
      if (queue.front().size() != to.size())
        fail(ErrorCode::failed, "threads", "size of a message", std::to_string(to.size()),
             std::to_string(queue.front().size()));
      std::memcpy(to.data(), queue.front().data(), to.size());
      queue.pop_front();
      return true;
    });
    return awaited_.empty();
  }

  const std::vector<int>& awaited() const override { return awaited_; }

 private:
  std::shared_ptr<Mail> mail_;
  int rank_, size_;
  std::vector<MutableBytes> receives_;
  std::vector<int> awaited_;
};

// Calls body() as each of `size` ranks at once. What one throws is thrown here, that of the lowest
// rank first. The number of bytes that were sent.
inline std::int64_t as_ranks(int size, const std::function<void(Communicator&)>& body,
                             std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  const auto mail = std::make_shared<ThreadTransport::Mail>();
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Communicator group(std::make_unique<ThreadTransport>(mail, rank, size),
                           {.timeout = timeout});
        body(group);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return mail->bytes;
}

}  // namespace heddle::distributed
