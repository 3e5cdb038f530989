// SPDX-License-Identifier: Apache-2.0
// What a running step promises: one answer for any number of threads, no allocation, one kernel run a distinct shard,
// memory as planned, and wrong input that changes nothing.

// The operators new and new[] below are equal, so g++ folds them into one and then misses the brackets.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

#include "support.hpp"

#include "kernels/support.hpp"

#include <tessera/kernels/detail/workspace.hpp>
#include <tessera/kernels/parallel.hpp>
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>

#include <dlfcn.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_ALLOCATIONS 0
#else
#define COUNTS_ALLOCATIONS 1
#endif

namespace ts = tessera;
using ts::P, ts::none;
using namespace runtime_test;

namespace allocation {

/// Callers of allocating functions since `start`, up to a number that no test needs.
std::atomic<bool> counting{false};
std::atomic<int> calls{0};
void* callers[256];

void note(void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  const int i = calls.fetch_add(1);
  if (i < 256) callers[i] = caller;
}

/// Calls between start and stop that do not come from TBB, whose pool is its own affair.
int outside_tbb() {
  int count = 0;
  for (int i = 0; i < std::min(calls.load(), 256); ++i) {
    Dl_info where{};
    const bool known = dladdr(callers[i], &where) != 0 && where.dli_fname != nullptr;
    if (!known || std::string(where.dli_fname).find("libtbb") == std::string::npos) ++count;
  }
  return count;
}

}  // namespace allocation

#if COUNTS_ALLOCATIONS
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  allocation::note(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  allocation::note(__builtin_return_address(0));
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) {
  allocation::note(__builtin_return_address(0));
  return __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  allocation::note(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** to, std::size_t alignment, std::size_t size) {
  allocation::note(__builtin_return_address(0));
  *to = __libc_memalign(alignment, size);
  return *to == nullptr ? ENOMEM : 0;
}
}

void* operator new(std::size_t size) {
  allocation::note(__builtin_return_address(0));
  if (void* p = __libc_malloc(size)) return p;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) {
  allocation::note(__builtin_return_address(0));
  if (void* p = __libc_malloc(size)) return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  allocation::note(__builtin_return_address(0));
  if (void* p = __libc_memalign(static_cast<std::size_t>(alignment), size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

namespace {

using cluster = ts::mesh<ts::axis<"data", 8>>;
constexpr std::int64_t batch = 1024;
constexpr std::int64_t classes = 12;

struct classifier {
  ts::nn::linear<48, 96> hidden;
  ts::nn::linear<96, classes> out;
  TESSERA_MODULE(classifier, hidden, out)
  constexpr auto operator()(auto x) { return out(ts::relu(hidden(x))); }
};

}  // namespace

inline constexpr auto executor_loss = [](auto& model, auto x, auto y) {
  return ts::mean(ts::optim::softmax_cross_entropy_with_integer_labels(model(x), y));
};

inline constexpr auto executor_train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(executor_loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

namespace {

auto make_images(unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<float> host(static_cast<std::size_t>(batch * 48));
  for (float& v : host) v = std::uniform_real_distribution<float>(-1, 1)(bits);
  return ts::device_put<ts::shape<batch, 48>, P<"data">, cluster>(host);
}

auto make_labels(std::int64_t bad_row = -1, std::int32_t bad_label = 0) {
  std::vector<std::int32_t> host(static_cast<std::size_t>(batch));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<std::int32_t>(i * 7 % classes);
  if (bad_row >= 0) host[static_cast<std::size_t>(bad_row)] = bad_label;
  return ts::device_put<ts::shape<batch>, P<"data">, cluster>(host);
}

/// A model, its optimizer and data.
struct training {
  ts::nn::bound<classifier, cluster> model;
  decltype(ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-2))) optimizer;
  decltype(make_images(0)) x;
  decltype(make_labels()) y;

  explicit training(unsigned seed = 0)
      : model(ts::init<classifier, cluster>(ts::nn::rngs{.params = seed})),
        optimizer(ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-2))),
        x(make_images(seed)),
        y(make_labels()) {}

  auto step() { return ts::jit<executor_train_step>(model, optimizer, x, y); }

  /// Every byte of model and optimizer.
  bytes state() const {
    bytes all;
    const auto add = [&](const auto& v) {
      all.insert(all.end(), v.data->bytes.data(), v.data->bytes.data() + v.data->bytes.size());
    };
    ts::visit_variables(model, add);
    ts::visit_variables(optimizer, add);
    return all;
  }
};

using step_type = ts::lowered<executor_train_step, ts::nn::bound<classifier, cluster>, decltype(training::optimizer),
                              decltype(training::x), decltype(training::y)>;

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const ts::error& e) {
    return e.what();
  }
  return "nothing was raised";
}

/// A run-time graph with its memory: every argument filled with small numbers.
struct machine {
  runtime::executor run;
  std::vector<runtime::storage_ptr> held{};
  std::vector<runtime::storage*> arguments{};
  std::vector<runtime::storage*> results{};

  explicit machine(const graph::graph& g) : run(runtime::interpreter(g)) {
    std::mt19937 bits(1);
    for (const graph::interface_value& a : run.program().arguments) {
      arguments.push_back(hold(a.type, g.mesh));
      runtime::copy_from_host(*arguments.back(),
                              to_bytes(draw(input{{}, -2, 3, true}, a.type.size(), bits), a.type.type).data());
    }
    for (const graph::interface_value& r : run.program().results)
      results.push_back(r.alias >= 0 ? arguments[static_cast<std::size_t>(r.alias)] : hold(r.type, g.mesh));
  }
  runtime::storage* hold(const aval& type, const mesh_value& mesh) {
    held.push_back(runtime::make_storage(type, mesh));
    return held.back().get();
  }
  void step() { run.run(arguments, results); }

  /// Kernel runs of all steps of a kind, and how many such steps there are.
  std::vector<std::int64_t> runs(graph::step_kind kind) const {
    std::vector<std::int64_t> found;
    for (std::size_t i = 0; i < run.program().steps.size(); ++i)
      if (run.program().steps[i].kind == kind) found.push_back(run.kernel_runs()[i]);
    return found;
  }
};

aval cut_first(dtype type, const std::vector<std::int64_t>& extents, int axis = 0) {
  aval a = array_type(type, extents);
  a.dims[0].axes = axis_append(0, axis);
  return a;
}

/// relu(x w1) w2 of a batch cut over `data`, its loss and a momentum update of both weights, in place.
graph::graph small_step(const mesh_value& mesh) {
  graph::graph g;
  g.mesh = mesh;
  const std::vector<value> in =
      add_inputs(g, std::vector{cut_first(dtype::f32, {64, 32}), array_type(dtype::f32, {32, 64}),
                                array_type(dtype::f32, {64, 16}), array_type(dtype::f32, {32, 64}),
                                array_type(dtype::f32, {64, 16})});
  const auto product = [](value a, value b) {
    return graph::dot(a, b, sharding::matmul_dims(2, 2),
                      graph::expect(sharding::matmul(a.type(), b.type(), nullptr, a.mesh())));
  };
  const value y = product(graph::unary(op::relu, product(in[0], in[1])), in[2]);
  const value loss_value = graph::sum(graph::unary(op::square, y)) / 1024.0;
  const int wrt[] = {in[1].id, in[2].id};
  const graph::list<int> grads = transform::gradients(g, loss_value.id, wrt);
  g.outputs.push_back({loss_value.id, -1});
  for (std::size_t i = 0; i < 2; ++i) {
    const value momentum = value{&g, grads[i]} + in[3 + i] * 0.9;
    g.outputs.push_back({momentum.id, static_cast<int>(3 + i)});
    g.outputs.push_back({(in[1 + i] - momentum * 0.01).id, static_cast<int>(1 + i)});
  }
  return g;
}

/// The highest byte of each device's part of the arena that a run changes, plus 1, whichever of two patterns lay there.
std::vector<std::int64_t> watermarks(machine& m) {
  std::vector<std::int64_t> high(
      static_cast<std::size_t>(m.run.arena().size()) / static_cast<std::size_t>(m.run.arena_stride()), 0);
  for (int pattern : {0x5a, 0xa5}) {
    std::memset(m.run.arena().data(), pattern, m.run.arena().size());
    m.step();
    for (std::size_t i = 0; i < m.run.arena().size(); ++i)
      if (m.run.arena()[i] != static_cast<std::byte>(pattern)) {
        auto& mark = high[i / static_cast<std::size_t>(m.run.arena_stride())];
        mark = std::max(mark, static_cast<std::int64_t>(i) % m.run.arena_stride() + 1);
      }
  }
  return high;
}

}  // namespace

TEST_CASE("a step gives the same bits on 1, 2 and 4 threads") {
  std::vector<bytes> states;
  std::vector<std::vector<float>> losses;
  for (int threads : {1, 2, 4}) {
    training t;
    losses.emplace_back();
    kernel_test::on_threads(threads, [&] {
      for (int i = 0; i < 5; ++i) losses.back().push_back(t.step().item());
    });
    states.push_back(t.state());
  }
  CHECK(losses[0] == losses[1]);
  CHECK(losses[0] == losses[2]);
  CHECK(states[0] == states[1]);
  CHECK(states[0] == states[2]);
  CHECK(losses[0][4] < losses[0][0]);
}

/// Scratch memory for every thread that may take part later: a thread makes its own at its first kernel, and on a busy
/// machine TBB sends threads late. Whether all came.
bool warm_all_threads() {
  const int threads = std::max(4, static_cast<int>(std::thread::hardware_concurrency()));
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::atomic<int> here{0};
  kernel_test::on_threads(threads, [&] {
    ts::kernels::parallel_for(threads, true, [&](std::int64_t) {
      ts::kernels::detail::workspace();
      ++here;
      while (here < threads && std::chrono::steady_clock::now() < last) std::this_thread::yield();
    });
  });
  return std::chrono::steady_clock::now() < last;
}

TEST_CASE("after three steps nothing is allocated") {
  if (!COUNTS_ALLOCATIONS) return;
  REQUIRE(warm_all_threads());
  training t;
  float sum = 0;
  kernel_test::on_threads(2, [&] {
    const auto twenty_steps = [&](auto use) {
      for (int i = 0; i < 3; ++i) use();
      allocation::calls = 0;
      allocation::counting = true;
      for (int i = 0; i < 20; ++i) use();
      allocation::counting = false;
      return allocation::outside_tbb();
    };
    CHECK(twenty_steps([&] { sum += t.step().item(); }) == 0);
    decltype(t.step()) kept;
    CHECK(twenty_steps([&] { kept = t.step(); }) == 0);
    CHECK(std::isfinite(kept.item()));
    // The counter counts: an allocation of ours is seen.
    CHECK(twenty_steps([] { delete new volatile int(1); }) == 20);
  });
  CHECK(std::isfinite(sum));
}

TEST_CASE(
    "a kernel runs once a distinct shard: a replicated update once, a batch-cut product as often as the batch is cut") {
  machine m(small_step(data_mesh(8)));
  m.step();
  // Two products forward, one for the hidden layer's gradient, two for the weights'. Those that sum over the cut
  // dimension may be one product over all blocks.
  std::vector<std::int64_t> products;
  for (std::size_t i = 0; i < m.run.program().steps.size(); ++i) {
    const graph::step& s = m.run.program().steps[i];
    if (s.kind != graph::step_kind::dot) continue;
    products.push_back(m.run.kernel_runs()[i]);
    CHECK(products.back() == (s.axes == 0 ? 8 : 1));
  }
  REQUIRE(products.size() == 5);
  CHECK(products[0] == 8);
  CHECK(products[1] == 8);
  std::int64_t updates = 0;
  for (std::size_t i = 0; i < m.run.program().steps.size(); ++i) {
    const graph::step& s = m.run.program().steps[i];
    bool writes_argument = false;
    for (int a = s.first + s.sources; a < s.first + s.sources + s.results; ++a)
      writes_argument |=
          m.run.program()
              .buffers[static_cast<std::size_t>(m.run.program().accesses[static_cast<std::size_t>(a)].buffer)]
              .where == graph::space::argument;
    if (!writes_argument) continue;
    ++updates;
    CHECK(m.run.kernel_runs()[i] == 1);
  }
  CHECK(updates >= 1);
  CHECK(m.runs(graph::step_kind::all_reduce) == std::vector<std::int64_t>{1});
}

TEST_CASE("a run changes no byte of a device's arena beyond its plan") {
  for (const mesh_value& mesh : {data_mesh(1), data_mesh(8), grid(2, 4)}) {
    machine m(small_step(mesh));
    REQUIRE(m.run.arena_stride() == tessera::aligned(m.run.program().temporary_bytes));
    const std::vector<std::int64_t> high = watermarks(m);
    for (std::int64_t mark : high) CHECK(mark <= m.run.program().temporary_bytes);
    CHECK(high[0] > m.run.program().temporary_bytes / 2);
  }
}

TEST_CASE("a chain of products needs exactly the arena that its plan says") {
  graph::graph g;
  g.mesh = data_mesh(4);
  const value x{&g, g.add_parameter(cut_first(dtype::f32, {64, 40}))};
  const value w{&g, g.add_parameter(array_type(dtype::f32, {40, 40}))};
  value y = x;
  for (int i = 0; i < 6; ++i)
    y = graph::dot(y, w, sharding::matmul_dims(2, 2),
                   graph::expect(sharding::matmul(y.type(), w.type(), nullptr, g.mesh)));
  g.outputs = {{y.id, -1}};
  machine m(g);
  CHECK(m.run.program().temporary_bytes == 2 * tessera::aligned(16 * 40 * 4));  // two blocks take turns
  for (std::int64_t mark : watermarks(m)) {
    CHECK(mark <= m.run.program().temporary_bytes);
    CHECK(mark > m.run.program().temporary_bytes - tessera::block_alignment);
  }
}

TEST_CASE("memory_analysis says what the executor allocates") {
  static_assert(step_type::memory_analysis().temp_size_in_bytes == step_type::program().temporary_bytes);
  const graph::program p = step_type::program();
  const runtime::executor run(p, cluster::value, std::vector<runtime::step_function>(p.steps.size()), {});
  CHECK(run.arena_stride() - step_type::memory_analysis().temp_size_in_bytes >= 0);
  CHECK(run.arena_stride() - step_type::memory_analysis().temp_size_in_bytes < tessera::block_alignment);
}

TEST_CASE("a label out of range is named by value, global position and range, and changes nothing") {
  training t;
  t.step().item();
  const bytes before = t.state();
  for (const auto& [row, label] : {std::pair<std::int64_t, std::int32_t>{0, 12}, {700, 99}, {1023, -1}}) {
    const auto bad = make_labels(row, label);
    const auto call = [&] { ts::jit<executor_train_step>(t.model, t.optimizer, t.x, bad); };
    CHECK_THROWS_AS(call(), ts::index_error);
    const std::string text = message_of(call);
    INFO(text);
    CHECK(text.find("label " + std::to_string(label) + " ") != std::string::npos);
    CHECK(text.find("position " + std::to_string(row) + " ") != std::string::npos);
    CHECK(text.find("[0, 12)") != std::string::npos);
    CHECK(t.state() == before);
  }
  CHECK(std::isfinite(t.step().item()));
}

TEST_CASE("labels of rank 2, cut along both dimensions, are named by their place in the whole array") {
  graph::graph g;
  g.mesh = grid(2, 4);
  aval labels = array_type(dtype::i32, {8, 8});
  labels.dims[0].axes = axis_append(0, 0);
  labels.dims[1].axes = axis_append(0, 1);
  aval logits = array_type(dtype::f32, {8, 8, 5});
  logits.dims[0].axes = labels.dims[0].axes;
  const std::vector<value> in = add_inputs(g, std::vector{logits, labels});
  const value losses = optim::write_cross_entropy(std::array{in[0], in[1]}, labels);
  g.outputs = {{losses.id, -1}};
  std::vector<double> host(64, 3);
  std::vector<bytes> inputs{to_bytes(std::vector<double>(320, 0.0), dtype::f32), to_bytes(host, dtype::i32)};
  CHECK(to_numbers(runtime::evaluate(g, inputs)[0], dtype::f32)[0] == Approx(std::log(5.0)));
  host[5 * 8 + 6] = 5;
  inputs[1] = to_bytes(host, dtype::i32);
  const std::string text = message_of([&] { runtime::evaluate(g, inputs); });
  CHECK(text.find("label 5 at position (5, 6) is outside [0, 5)") != std::string::npos);
}

TEST_CASE("arguments that hold nothing are refused") {
  training t;
  decltype(t.x) empty;
  CHECK_THROWS_AS(ts::jit<executor_train_step>(t.model, t.optimizer, empty, t.y), ts::value_error);
  CHECK_THROWS_AS(empty.to_vector(), ts::value_error);
  ts::nn::bound<classifier, cluster> unfilled;
  CHECK_THROWS_AS(ts::jit<executor_train_step>(unfilled, t.optimizer, t.x, t.y), ts::value_error);
  CHECK_THROWS_AS(ts::nn::to_vector(unfilled.hidden.kernel), ts::value_error);
  CHECK(std::isfinite(t.step().item()));
}

TEST_CASE("a copy of a model keeps its values when the original is trained, and trains on its own") {
  training t;
  t.step().item();
  training copy = t;
  const bytes before = copy.state();
  const float next = t.step().item();
  CHECK(copy.state() == before);
  CHECK(t.state() != before);
  CHECK(copy.step().item() == next);
  CHECK(copy.state() == t.state());
}

TEST_CASE("a result that is kept keeps its value while later steps run") {
  training t;
  const auto first = t.step();
  const float value_then = first.item();
  const auto second = t.step();
  CHECK(first.item() == value_then);
  CHECK(second.item() != value_then);
}

TEST_CASE("two threads may call one step on different models at once") {
  const auto train = [](unsigned seed) {
    training t(seed);
    for (int i = 0; i < 30; ++i) t.step().item();
    return t.state();
  };
  const bytes alone[] = {train(1), train(2)};
  bytes together[2];
  std::thread other([&] { together[1] = train(2); });
  together[0] = train(1);
  other.join();
  CHECK(together[0] == alone[0]);
  CHECK(together[1] == alone[1]);
}

TEST_CASE("a batch of extent 0 gives empty results, sums of 0 and gradients of 0") {
  for (const mesh_value& mesh : {data_mesh(1), data_mesh(8)}) {
    graph::graph g;
    g.mesh = mesh;
    const std::vector<value> in =
        add_inputs(g, std::vector{cut_first(dtype::f32, {0, 16}), array_type(dtype::f32, {16, 4})});
    const value y = graph::dot(in[0], in[1], sharding::matmul_dims(2, 2),
                               graph::expect(sharding::matmul(in[0].type(), in[1].type(), nullptr, mesh)));
    const value z = ops::write_softmax<op::softmax, -1>(std::array{graph::unary(op::tanh, y)}, y.type());
    const value total = graph::sum(z);
    const int wrt[] = {in[1].id};
    g.outputs = {{y.id, -1}, {z.id, -1}, {total.id, -1}, {transform::gradients(g, total.id, wrt)[0], -1}};
    const auto out = runtime::evaluate(g, std::vector<bytes>{{}, to_bytes(std::vector<double>(64, 1.0), dtype::f32)});
    CHECK(out[0].empty());
    CHECK(out[1].empty());
    CHECK(to_numbers(out[2], dtype::f32) == std::vector<double>{0});
    CHECK(to_numbers(out[3], dtype::f32) == std::vector<double>(64, 0));
  }
}
