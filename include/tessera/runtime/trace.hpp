// SPDX-License-Identifier: Apache-2.0
// Where a step's time goes: with TESSERA_TRACE=file.json in the environment, all runs of a process are written as a
// trace.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/kernels/parallel.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#if defined(TESSERA_COMPILED)
#include <tessera/core/atomic_file.hpp>
#include <tessera/core/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>
#endif

namespace tessera::runtime {

/// What ran on which device and on which thread, and when: one row each, in the format that chrome://tracing and
/// Perfetto read (Trace Event Format). Times are microseconds since the tracer began. The first million events are
/// kept.
class tracer {
 public:
  enum class row : std::uint8_t { device, thread };

  /// The tracer that writes the file named by TESSERA_TRACE when the process ends, or null without that variable. What
  /// cannot be written is said on the error stream.
  static tracer* asked();

  tracer();
  ~tracer();
  tracer(const tracer&) = delete;
  tracer& operator=(const tracer&) = delete;

  /// The number under which events have this name.
  int number_of(std::string_view name);

  /// Nanoseconds since the tracer began.
  std::int64_t now() const;

  void add(int name, row kind, std::int64_t number, std::int64_t begin, std::int64_t end);

  /// The row of the thread that asks.
  static std::int64_t this_thread();

  /// All events so far as JSON.
  std::string json() const;

 private:
  struct record;
  record* record_;
};

/// While it lives, what this thread and the loops it starts do is an event called `name` on their threads' rows.
class traced_work : kernels::range_observer {
 public:
  traced_work(tracer& to, int name) : to_(to), name_(name), begin_(to.now()) { kernels::observer = this; }
  ~traced_work() {
    kernels::observer = nullptr;
    to_.add(name_, tracer::row::thread, tracer::this_thread(), begin_, to_.now());
  }
  traced_work(const traced_work&) = delete;
  traced_work& operator=(const traced_work&) = delete;

  std::int64_t begin() const { return begin_; }

 private:
  std::int64_t now() const override { return to_.now(); }
  void worked(std::int64_t begin) const override {
    to_.add(name_, tracer::row::thread, tracer::this_thread(), begin, to_.now());
  }

  tracer& to_;
  int name_;
  std::int64_t begin_;
};

#if defined(TESSERA_COMPILED)

struct tracer::record {
  struct event {
    int name;
    row kind;
    std::int64_t number, begin, end;
  };
  static constexpr std::size_t most = 1'000'000;

  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  mutable std::mutex mutex{};
  std::map<std::string, int, std::less<>> numbers{};
  std::vector<std::string> names{};
  std::vector<event> events{};
  std::size_t dropped = 0;
};

TESSERA_COMPILED tracer::tracer() : record_(new record) {}
TESSERA_COMPILED tracer::~tracer() { delete record_; }

TESSERA_COMPILED tracer* tracer::asked() {
  struct written_at_exit {
    const char* path = std::getenv("TESSERA_TRACE");
    tracer events{};
    ~written_at_exit() {
      if (path == nullptr) return;
      try {
        write_file(path, events.json());
      } catch (const error& e) {
        std::fprintf(stderr, "tessera: TESSERA_TRACE: %s\n", e.what());
      }
    }
  };
  static written_at_exit trace;
  return trace.path == nullptr || *trace.path == '\0' ? nullptr : &trace.events;
}

TESSERA_COMPILED int tracer::number_of(std::string_view name) {
  const std::lock_guard lock(record_->mutex);
  const auto known = record_->numbers.find(name);
  if (known != record_->numbers.end()) return known->second;
  const int number = static_cast<int>(record_->names.size());
  record_->names.emplace_back(name);
  record_->numbers.emplace(name, number);
  return number;
}

TESSERA_COMPILED std::int64_t tracer::now() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - record_->start)
      .count();
}

TESSERA_COMPILED void tracer::add(int name, row kind, std::int64_t number, std::int64_t begin, std::int64_t end) {
  const std::lock_guard lock(record_->mutex);
  if (record_->events.size() == record::most) ++record_->dropped;
  else record_->events.push_back({name, kind, number, begin, end});
}

TESSERA_COMPILED std::int64_t tracer::this_thread() {
  static std::atomic<std::int64_t> threads{0};
  thread_local const std::int64_t number = threads++;
  return number;
}

TESSERA_COMPILED std::string tracer::json() const {
  const std::lock_guard lock(record_->mutex);
  std::string out = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":" + std::to_string(record_->dropped) +
                    "},\"traceEvents\":[\n";
  const auto fixed = [](std::int64_t nanoseconds) {
    const std::string rest = std::to_string(1000 + nanoseconds % 1000).substr(1);
    return std::to_string(nanoseconds / 1000) + "." + rest;
  };
  constexpr const char* groups[] = {"devices", "threads"};
  constexpr const char* rows[] = {"device ", "thread "};
  for (int kind = 0; kind < 2; ++kind)
    out += "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + std::to_string(kind) + ",\"args\":{\"name\":\"" +
           groups[kind] + "\"}},\n";
  std::map<std::pair<row, std::int64_t>, bool> named;
  for (const record::event& e : record_->events) {
    const std::string place =
        "\"pid\":" + std::to_string(static_cast<int>(e.kind)) + ",\"tid\":" + std::to_string(e.number);
    if (named.emplace(std::pair(e.kind, e.number), true).second)
      out += "{\"ph\":\"M\",\"name\":\"thread_name\"," + place + ",\"args\":{\"name\":\"" +
             rows[static_cast<int>(e.kind)] + std::to_string(e.number) + "\"}},\n";
    out += "{\"ph\":\"X\",\"name\":\"" + record_->names[static_cast<std::size_t>(e.name)] + "\"," + place +
           ",\"ts\":" + fixed(e.begin) + ",\"dur\":" + fixed(e.end - e.begin) + "},\n";
  }
  return out + "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":0,\"args\":{\"sort_index\":0}}]}\n";
}

#endif

}  // namespace tessera::runtime
