// SPDX-License-Identifier: Apache-2.0
// Speed of tessera::kernels::gemm: prints gemm.[nt.|tn.]<MxKxN>.gflops[.2t]=<value>, the median of several runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <tbb/global_control.h>

#include <tessera/kernels/gemm.hpp>

namespace {

enum class form { nn, nt, tn };

struct shape {
  form kind;
  std::int64_t m, k, n;
};

constexpr shape shapes[] = {
    {form::nn, 256, 256, 1024},
    {form::nn, 256, 1024, 256},
    {form::nn, 64, 512, 8192},
    {form::nn, 64, 8192, 512},
    {form::nn, 1024, 256, 768},
    {form::nn, 1024, 1024, 1024},
    {form::nn, 512, 784, 128},
    {form::nt, 256, 256, 1024},
    {form::nt, 256, 1024, 256},
    {form::tn, 256, 256, 1024},
    {form::tn, 1024, 256, 256},
    {form::nt, 64, 512, 8192},
    {form::tn, 512, 64, 8192},
    {form::tn, 8192, 64, 512},
    // The layers of a 784-256-128-10 classifier on a batch of 256, and on one of 8 shards of it: forward, input
    // gradient, weight gradient.
    {form::nn, 256, 784, 256},
    {form::nn, 256, 256, 128},
    {form::nn, 256, 128, 10},
    {form::nt, 256, 10, 128},
    {form::nt, 256, 128, 256},
    {form::tn, 784, 256, 256},
    {form::tn, 256, 256, 128},
    {form::tn, 128, 256, 10},
    {form::nn, 32, 784, 256},
    {form::nn, 32, 256, 128},
    {form::nn, 32, 128, 10},
    {form::nt, 32, 10, 128},
    {form::nt, 32, 128, 256},
    {form::tn, 784, 32, 256},
    {form::tn, 256, 32, 128},
    {form::tn, 128, 32, 10},
};

double seconds_per_call(const tessera::kernels::gemm_problem<float>& problem, bool parallel) {
  using clock = std::chrono::steady_clock;
  const auto run = [&](int calls) {
    const auto start = clock::now();
    for (int i = 0; i < calls; ++i) tessera::kernels::gemm(problem, parallel);
    return std::chrono::duration<double>(clock::now() - start).count() / calls;
  };
  run(2);
  const int calls = std::max(1, static_cast<int>(2e-3 / run(3)));
  std::vector<double> times(25);
  for (double& time : times) time = run(calls);
  std::nth_element(times.begin(), times.begin() + 12, times.end());
  return times[12];
}

void measure(const shape& s, int threads) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  std::vector<float> a(static_cast<std::size_t>(s.m * s.k)), b(static_cast<std::size_t>(s.k * s.n));
  std::vector<float> c(static_cast<std::size_t>(s.m * s.n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 13) - 6;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  tessera::kernels::gemm_problem<float> p;
  p.m = s.m, p.n = s.n, p.k = s.k;
  p.a_transposed = s.kind == form::tn, p.b_transposed = s.kind == form::nt;
  p.a = a.data(), p.lda = p.a_transposed ? s.m : s.k;
  p.b = b.data(), p.ldb = p.b_transposed ? s.k : s.n;
  p.c = c.data(), p.ldc = s.n;
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const char* const kind = s.kind == form::nn ? "" : s.kind == form::nt ? "nt." : "tn.";
  std::printf("gemm.%s%ldx%ldx%ld.gflops%s=%.1f\n", kind, static_cast<long>(s.m), static_cast<long>(s.k),
              static_cast<long>(s.n), threads == 2 ? ".2t" : "", flops / seconds_per_call(p, threads > 1) * 1e-9);
}

}  // namespace

int main() {
  for (const shape& s : shapes) {
    measure(s, 1);
    measure(s, 2);
  }
}
