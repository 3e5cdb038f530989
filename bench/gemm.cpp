// SPDX-License-Identifier: Apache-2.0
// Matrix products against the best peer that is installed: bench_gemm [part of a name...]. Prints
// gemm.[nt.|tn.]<MxKxN>[.2t]=<value> GFLOP/s ratio=<times the best peer's> peer=<its name> of_peak=<share of what the
// multiply-adds alone reach> error=<ours, the peer's>, then means and worst ratios; products of bfloat16 also beside
// ours of float. gemm_fma is float by fused multiply-adds, as on processors without matrix registers, in the same
// turns. A round goes through all shapes, so that a slow moment of the machine hits few of a shape's rounds, and takes
// the fastest of five turns at each; ratios are medians over rounds of those within one. Errors are roots of mean
// squares, relative to the sums of absolute products, in units of 2^-24.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <tbb/cache_aligned_allocator.h>
#include <tbb/global_control.h>

#include <tessera/kernels/gemm.hpp>
#include <tessera/runtime/dot_algorithm.hpp>

#include "peers/peer.hpp"
#include "support.hpp"

namespace {

using bench::element;

enum class form { nn, nt, tn };

struct shape {
  form kind;
  std::int64_t m, k, n;
};

constexpr shape large[] = {
    {form::nn, 256, 256, 1024}, {form::nn, 256, 1024, 256},   {form::nn, 64, 512, 8192},  {form::nn, 64, 8192, 512},
    {form::nn, 1024, 256, 768}, {form::nn, 1024, 1024, 1024}, {form::nn, 512, 784, 128},  {form::nt, 256, 256, 1024},
    {form::nt, 256, 1024, 256}, {form::tn, 256, 256, 1024},   {form::tn, 1024, 256, 256}, {form::nt, 64, 512, 8192},
    {form::tn, 512, 64, 8192},  {form::tn, 8192, 64, 512},
};

/// The layers of a 784-256-128-10 classifier on a batch of 256, and on one of 8 shards of it: forward, input gradient,
/// weight gradient.
constexpr shape layers[] = {
    {form::nn, 256, 784, 256}, {form::nn, 256, 256, 128}, {form::nn, 256, 128, 10},  {form::nt, 256, 10, 128},
    {form::nt, 256, 128, 256}, {form::tn, 784, 256, 256}, {form::tn, 256, 256, 128}, {form::tn, 128, 256, 10},
    {form::nn, 32, 784, 256},  {form::nn, 32, 256, 128},  {form::nn, 32, 128, 10},   {form::nt, 32, 10, 128},
    {form::nt, 32, 128, 256},  {form::tn, 784, 32, 256},  {form::tn, 256, 32, 128},  {form::tn, 128, 32, 10},
};

/// A few rows or columns, as when one sample or a few are run through a layer.
constexpr shape few[] = {{form::nn, 1, 512, 512},    {form::nn, 4, 512, 512},   {form::nn, 8, 512, 512},
                         {form::nn, 12, 1024, 1024}, {form::nn, 1, 1024, 4096}, {form::tn, 4, 512, 512},
                         {form::nt, 1, 512, 512},    {form::nt, 4, 512, 512},   {form::nt, 32, 512, 2048},
                         {form::nn, 512, 512, 1},    {form::tn, 512, 512, 1}};

constexpr shape wide[] = {
    {form::nn, 256, 256, 1024}, {form::nn, 1024, 1024, 1024}, {form::nt, 256, 1024, 256}, {form::tn, 1024, 256, 256}};

struct contender {
  std::string name;
  std::unique_ptr<bench::prepared> call;
  std::vector<double> seconds = {};  ///< of a call, by round

  double typical() const { return bench::median(seconds); }

  /// How many times as fast as another one.
  double faster_than(const contender& other) const { return bench::median_ratio(other.seconds, seconds); }
};

struct peer {
  std::string name;
  bench::peer_prepare_function prepare;
};

/// OpenBLAS 0.3.21 takes processors younger than itself for the oldest ones, unless it is told which kernels to use.
void choose_openblas_kernels() {
  unsetenv("OPENBLAS_L2_SIZE");
  unsetenv("OPENBLAS_CORETYPE");
  if (__builtin_cpu_supports("avx512bf16")) setenv("OPENBLAS_CORETYPE", "Cooperlake", 1);
  else if (__builtin_cpu_supports("avx512f")) setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
}

std::vector<peer> installed_peers() {
  choose_openblas_kernels();
  std::vector<peer> found;
  for (const char* const name : {"openblas", "onednn", "onednn_sgemm", "libxsmm"}) {
    const std::string path = std::string(TESSERA_PEER_DIR) + "/peer_" + name + ".so";
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      found.push_back({name, reinterpret_cast<bench::peer_prepare_function>(dlsym(library, "peer_prepare"))});
  }
  return found;
}

template <class T>
struct ours final : bench::prepared {
  tessera::kernels::gemm_problem<T> problem;
  bool parallel;
  tessera::dot_algorithm algorithm;

  ours(const bench::product& p, bool on_threads, tessera::dot_algorithm by = tessera::default_dot_algorithm::now())
      : parallel(on_threads), algorithm(by) {
    problem.m = p.m, problem.n = p.n, problem.k = p.k;
    problem.a_transposed = p.a_transposed, problem.b_transposed = p.b_transposed;
    problem.a = static_cast<const T*>(p.a), problem.lda = p.a_transposed ? p.m : p.k;
    problem.b = static_cast<const T*>(p.b), problem.ldb = p.b_transposed ? p.k : p.n;
    problem.c = static_cast<tessera::compute_t<T>*>(p.c), problem.ldc = p.n;
  }
  void run() override {
    const tessera::default_dot_algorithm chosen(algorithm);
    tessera::kernels::gemm(problem, parallel);
  }
};

/// Independent multiply-adds in registers on each thread: what no product can exceed.
struct multiply_adds final : bench::prepared {
  static constexpr int chains = 12;
  static constexpr std::int64_t rounds = 10000;
  int threads;

  explicit multiply_adds(int on) : threads(on) {}
  double flops() const { return 2.0 * tessera::kernels::detail::width<float> * chains * rounds * threads; }
  void run() override {
    tessera::kernels::parallel_for(threads, threads > 1, [](std::int64_t) {
      using batch = tessera::kernels::detail::batch<float>;
      batch sums[chains];
      for (batch& sum : sums) {
        sum = batch(0.0f);
        asm volatile("" : "+x"(sum.data));  // or else the compiler sees that all are the same and computes one
      }
      batch x(1.0f), y(0.5f);
      for (std::int64_t i = 0; i < rounds; ++i) {
        asm volatile("" : "+x"(x.data), "+x"(y.data));
        tessera::kernels::detail::unrolled<chains>([&](auto j) __attribute__((always_inline)) {
          sums[j] = tessera::kernels::detail::fma(x, y, sums[j]);
        });
      }
      for (batch& sum : sums) asm volatile("" : : "x"(sum.data));
    });
  }
};

/// One turn: the threads of the one before it have gone to sleep, a few calls warm the caches, then a few milliseconds
/// are measured.
double seconds_per_call(bench::prepared& call) {
  const auto run = [&](int calls) { return bench::seconds_a_call([&] { call.run(); }, calls); };
  std::this_thread::sleep_for(std::chrono::milliseconds(8));
  run(2);
  const double guess = run(2);
  run(static_cast<int>(1e-3 / guess));
  return run(std::max(1, static_cast<int>(4e-3 / guess)));
}

std::string name_of(const char* prefix, const shape& s, int threads) {
  const char* const kind = s.kind == form::nn ? "" : s.kind == form::nt ? "nt." : "tn.";
  return std::string(prefix).append(".") + kind + std::to_string(s.m) + "x" + std::to_string(s.k) + "x" +
         std::to_string(s.n) + (threads > 1 ? "." + std::to_string(threads) + "t" : "");
}

/// The operands and the result of one product.
template <class T>
struct operands {
  std::vector<T, tbb::cache_aligned_allocator<T>> a, b;  // as a program's arena has them
  std::vector<tessera::compute_t<T>, tbb::cache_aligned_allocator<tessera::compute_t<T>>> c;
  bench::product product;

  explicit operands(const shape& s)
      : a(static_cast<std::size_t>(s.m * s.k)),
        b(static_cast<std::size_t>(s.k * s.n)),
        c(static_cast<std::size_t>(s.m * s.n)) {
    std::mt19937 bits(1);
    std::normal_distribution<float> normal;
    for (T& x : a) x = T(normal(bits));
    for (T& x : b) x = T(normal(bits));
    product = {element::f32, s.kind == form::tn, s.kind == form::nt, s.m, s.k, s.n, a.data(), b.data(), c.data()};
    if (sizeof(T) == 8) product.type = element::f64;
    if (sizeof(T) == 2) product.type = element::bf16;
  }
};

/// How far what a call computes is from the exact product, in a few of its elements.
template <class T>
double error_of(bench::prepared& call, const operands<T>& data) {
  call.run();
  const bench::product& p = data.product;
  std::mt19937 bits(2);
  double sum = 0;
  constexpr int elements = 1000;
  for (int e = 0; e < elements; ++e) {
    const std::int64_t i = bits() % static_cast<std::uint64_t>(p.m), j = bits() % static_cast<std::uint64_t>(p.n);
    double exact = 0, size = 0;
    for (std::int64_t s = 0; s < p.k; ++s) {
      const double term =
          static_cast<double>(data.a[static_cast<std::size_t>(p.a_transposed ? s * p.m + i : i * p.k + s)]) *
          static_cast<double>(data.b[static_cast<std::size_t>(p.b_transposed ? j * p.k + s : s * p.n + j)]);
      exact += term, size += std::abs(term);
    }
    const double off = (static_cast<double>(data.c[static_cast<std::size_t>(i * p.n + j)]) - exact) / size * 0x1p24;
    sum += off * off;
  }
  return std::sqrt(sum / elements);
}

/// Ratios to the best peer of a list of shapes.
struct summary {
  double logarithms = 0;
  double worst = INFINITY;
  int count = 0;

  void add(double ratio) {
    logarithms += std::log(ratio);
    worst = std::min(worst, ratio);
    ++count;
  }
  void print(const std::string& name) const {
    if (count > 0)
      std::printf("%s.mean=%.3f ratio\n%s.worst=%.3f ratio\n", name.c_str(), std::exp(logarithms / count), name.c_str(),
                  worst);
  }
};

/// One shape on some threads, and all who compute it.
template <class T>
class trial {
 public:
  trial(const char* prefix, const shape& s, int threads, const std::vector<peer>& peers)
      : prefix_(prefix), shape_(s), threads_(threads), data_(s) {
    add("tessera", new ours<T>(data_.product, threads > 1));
    if constexpr (sizeof(T) == 4) {
      add("multiply_adds", new multiply_adds(threads));
      add("fma", new ours<float>(data_.product, threads > 1, tessera::dot_algorithm::f32_f32_f32));
    }
    if constexpr (sizeof(T) == 2) {
      in_float_.emplace(s);
      add("float32", new ours<float>(in_float_->product, threads > 1));
    }
    first_peer_ = contenders_.size();
    for (const peer& p : peers)
      if (bench::prepared* const call = p.prepare(data_.product, threads)) add(p.name, call);
  }

  /// A round: each contender's fastest of a few turns, since neighbours of the machine only add to what one takes.
  void take_turns() {
    constexpr int turns_a_round = 5;
    for (contender& c : contenders_) c.seconds.push_back(INFINITY);
    for (int turn = 0; turn < turns_a_round; ++turn)
      for (contender& c : contenders_) c.seconds.back() = std::min(c.seconds.back(), seconds_per_call(*c.call));
  }

  /// Prints what was measured, and adds ratios to the best peer; `fma_ratios` are those of fused multiply-adds, where
  /// they are measured apart.
  void report(summary& ratios, summary& fma_ratios) const {
    const contender& mine = contenders_[0];
    if constexpr (sizeof(T) == 2) {
      print(prefix_, mine);
      std::printf(" ratio=%.3f peer=float32\n", mine.faster_than(contenders_[1]));
    }
    print(prefix_, mine);
    if (first_peer_ == contenders_.size()) {
      std::printf(" peer=absent\n");
      return;
    }
    const contender& best = *std::min_element(
        contenders_.begin() + static_cast<std::ptrdiff_t>(first_peer_), contenders_.end(),
        [&](const contender& x, const contender& y) { return mine.faster_than(x) < mine.faster_than(y); });
    ratios.add(print_ratio(mine, best));
    if constexpr (sizeof(T) == 4) {
      std::printf(" of_peak=%.2f peer_of_peak=%.2f error=%.3f peer_error=%.3f\n", of_peak(mine), of_peak(best),
                  error_of(*mine.call, data_), error_of(*best.call, data_));
      const contender& by_fma = contenders_[2];
      print((std::string(prefix_) + "_fma").c_str(), by_fma);
      fma_ratios.add(print_ratio(by_fma, best));
      std::printf(" of_peak=%.2f error=%.3f", of_peak(by_fma), error_of(*by_fma.call, data_));
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  void add(const std::string& name, bench::prepared* call) {
    contenders_.push_back({name, std::unique_ptr<bench::prepared>(call)});
  }
  double flops() const {
    return 2.0 * static_cast<double>(shape_.m) * static_cast<double>(shape_.n) * static_cast<double>(shape_.k);
  }
  void print(const char* prefix, const contender& c) const {
    std::printf("%s=%.1f GFLOP/s", name_of(prefix, shape_, threads_).c_str(), flops() / c.typical() * 1e-9);
  }
  static double print_ratio(const contender& c, const contender& best) {
    const double ratio = c.faster_than(best);
    std::printf(" ratio=%.3f peer=%s", ratio, best.name.c_str());
    return ratio;
  }
  double of_peak(const contender& c) const {
    return c.faster_than(contenders_[1]) * flops() / multiply_adds(threads_).flops();
  }

  const char* prefix_;
  shape shape_;
  int threads_;
  operands<T> data_;
  std::optional<operands<float>> in_float_;  ///< of what bfloat16 is compared with
  std::vector<contender> contenders_;
  std::size_t first_peer_ = 0;
};

struct session {
  static constexpr int rounds = 9;

  std::vector<peer> peers = installed_peers();
  std::vector<std::string> wanted;

  bool wants(const std::string& name) const {
    return wanted.empty() || std::any_of(wanted.begin(), wanted.end(),
                                         [&](const std::string& part) { return name.find(part) != name.npos; });
  }

  template <class T, std::size_t N>
  void measure_all(const char* prefix, const shape (&shapes)[N]) {
    for (const int threads : {1, 2}) {
      const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
      std::vector<std::unique_ptr<trial<T>>> trials;
      for (const shape& s : shapes)
        if (wants(name_of(prefix, s, threads))) trials.push_back(std::make_unique<trial<T>>(prefix, s, threads, peers));
      for (int round = 0; round < rounds; ++round)
        for (const auto& t : trials) t->take_turns();
      summary ratios, fma_ratios;
      for (const auto& t : trials) t->report(ratios, fma_ratios);
      ratios.print(std::string(prefix) + (threads > 1 ? ".2t" : ".1t"));
      fma_ratios.print(std::string(prefix) + (threads > 1 ? "_fma.2t" : "_fma.1t"));
    }
  }
};

}  // namespace

int main(int count, char** arguments) {
  session run;
  run.wanted.assign(arguments + 1, arguments + count);
  run.measure_all<double>("gemm_f64", wide);
  run.measure_all<tessera::bfloat16>("gemm_bf16", large);
  run.measure_all<float>("gemm_layer", layers);
  run.measure_all<float>("gemm_few", few);
  run.measure_all<float>("gemm", large);
}
