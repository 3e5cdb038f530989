// SPDX-License-Identifier: Apache-2.0
// Work that is bound by memory, as a share of the bytes a second that copying reaches in the same run on the same
// threads: `elementwise.<work>.<size>.<threads>t=<GB/s> GB/s ratio=<ours / copy> peer=copy`; random bits a core, and
// numbers made of them by the bits they take; functions a core.
#include "copies.hpp"
#include "support.hpp"

#include <tessera/tessera.hpp>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace ts = tessera;

inline constexpr auto total = [](auto x) { return ts::sum(x); };
inline constexpr auto largest = [](auto x) { return ts::max(x); };
inline constexpr auto rows = [](auto x) { return ts::sum<1>(x); };
inline constexpr auto columns = [](auto x) { return ts::sum<0>(x); };
inline constexpr auto norm = [](auto x) { return ts::sum(ts::square(x)); };

template <std::int64_t N>
struct destination {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<N>, ts::P<>, ts::nn::initializers::constant(0.0)> z;
  TESSERA_MODULE(destination, z)
};
inline constexpr auto chain_into = [](auto& to, auto x, auto y) { to.z = ts::relu(x * 0.5 + y) - x; };

/// Arrays of N elements, beside copies of as many bytes from and to memory that is as large altogether: what fits a
/// cache for one has to fit it for the other.
template <std::int64_t N>
void measure(const char* size, int calls) {
  const std::vector<float> host(static_cast<std::size_t>(N), 1.5f);
  auto to = ts::init<destination<N>>(ts::nn::rngs{0});
  const auto x = ts::device_put<ts::shape<N>, ts::P<>, ts::mesh<>>(host);
  const auto y = ts::device_put<ts::shape<N>, ts::P<>, ts::mesh<>>(host);
  const auto matrix = ts::device_put<ts::shape<N / 1024, 1024>, ts::P<>, ts::mesh<>>(host);
  struct work {
    const char* name;
    std::size_t arrays;
    std::function<void()> run;
  };
  const std::vector<work> all{{"chain", 3, [&] { ts::jit<chain_into>(to, x, y); }},
                              {"sum", 1, [&] { ts::jit<total>(x); }},
                              {"max", 1, [&] { ts::jit<largest>(x); }},
                              {"sum_rows", 1, [&] { ts::jit<rows>(matrix); }},
                              {"sum_columns", 1, [&] { ts::jit<columns>(matrix); }},
                              {"sum_of_squares", 1, [&] { ts::jit<norm>(x); }}};
  const bench::copies one(N / 2), three(N / 2 * 3);
  for (int threads : {1, 2}) {
    const ts::max_threads limit(threads);
    std::vector<bench::contender> contenders;
    for (const bench::copies* c : {&one, &three}) {
      contenders.push_back({"memcpy", [c] { c->by_memcpy(); }});
      contenders.push_back({"loop", [c] { c->by_loop(); }});
    }
    for (const work& w : all) contenders.push_back({w.name, w.run});
    const bench::turns turns(contenders, 9, calls);
    const auto faster = [&](std::size_t i) { return turns.ratio(i, i + 1) < 1 ? i : i + 1; };
    const std::size_t copy_one = faster(0), copy_three = faster(2);
    const auto print = [&](const char* name, std::size_t arrays, std::size_t contender) {
      std::printf("elementwise.%s.%s.%dt=%.1f GB/s ratio=%.2f peer=copy\n", name, size, threads,
                  static_cast<double>(arrays) * 4.0 * static_cast<double>(N) / turns.seconds(contender) * 1e-9,
                  turns.ratio(arrays == 1 ? copy_one : copy_three, contender));
    };
    print("copy_one", 1, copy_one);
    print("copy_three", 3, copy_three);
    for (std::size_t i = 0; i < all.size(); ++i) print(all[i].name, all[i].arrays, 4 + i);
  }
}

template <const auto& F>
inline constexpr auto applied = [](auto x) { return F(x); };
using drawn = ts::shape<1 << 14>;
inline constexpr auto random_bits = [](auto key) { return ts::random::bits<drawn>(key); };
inline constexpr auto random_uniform = [](auto key) { return ts::random::uniform<drawn>(key); };
inline constexpr auto random_normal = [](auto key) { return ts::random::normal<drawn>(key); };
inline constexpr auto random_bernoulli = [](auto key) { return ts::random::bernoulli<drawn>(key, 0.3); };

/// What fits the first two caches, on one thread.
void measure_functions() {
  const ts::max_threads one(1);
  constexpr std::int64_t n = 1 << 14;
  std::vector<float> host(n);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i) / (n / 4) + 0.01f;
  const auto x = ts::device_put<ts::shape<n>, ts::P<>, ts::mesh<>>(host);
  const std::vector<bench::contender> all{
      {"exp", [&] { ts::jit<applied<ts::exp>>(x); }},         {"log", [&] { ts::jit<applied<ts::log>>(x); }},
      {"tanh", [&] { ts::jit<applied<ts::tanh>>(x); }},       {"erf", [&] { ts::jit<applied<ts::erf>>(x); }},
      {"sin", [&] { ts::jit<applied<ts::sin>>(x); }},         {"cos", [&] { ts::jit<applied<ts::cos>>(x); }},
      {"sigmoid", [&] { ts::jit<applied<ts::sigmoid>>(x); }}, {"gelu", [&] { ts::jit<applied<ts::gelu>>(x); }}};
  const auto key = ts::device_put<ts::shape<2>, ts::P<>, ts::mesh<>>(std::vector<std::uint32_t>{0, 7});
  const std::vector<bench::contender> draws{{"random_bits", [&] { ts::jit<random_bits>(key); }},
                                            {"random_uniform", [&] { ts::jit<random_uniform>(key); }},
                                            {"random_normal", [&] { ts::jit<random_normal>(key); }},
                                            {"random_bernoulli", [&] { ts::jit<random_bernoulli>(key); }}};
  const bench::turns functions(all, 15, 50), drawing(draws, 15, 50);
  for (std::size_t i = 0; i < draws.size(); ++i)
    std::printf("elementwise.%s=%.2f GB/s ratio=none peer=none\n", draws[i].name.c_str(),
                n * 4 / drawing.seconds(i) * 1e-9);
  for (std::size_t i = 0; i < all.size(); ++i)
    std::printf("elementwise.%s=%.3f ns ratio=none peer=none\n", all[i].name.c_str(), functions.seconds(i) / n * 1e9);
}

}  // namespace

int main() {
  measure_functions();
  measure<(std::int64_t{2} << 20) / 4>("2MiB", 200);
  measure<(std::int64_t{128} << 20) / 4>("128MiB", 2);
}
