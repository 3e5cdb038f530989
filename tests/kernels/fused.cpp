// SPDX-License-Identifier: Apache-2.0
// Fused kernels compute what the interpreter does: every operation, type and way of reading, at every size, within
// their arrays.
#include "support.hpp"

#include <tessera/kernels/fused.hpp>
#include <tessera/kernels/naive_fused.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <memory>
#include <string>

using namespace tessera;
using graph::op;
using graph::source_mode;
using kernel_test::edge;
using kernels::fused_call;

namespace {

struct source {
  dtype type;
  source_mode mode;
};
struct instruction {
  op code;
  dtype type;
  dtype operand;
  int a, b = -1, c = -1;
};
struct result {
  dtype type;
  int place;
};

/// An instruction list as the planner writes it.
template <std::size_t S, std::size_t I, std::size_t R>
constexpr auto instructions(int lanes, const source (&sources)[S], const instruction (&body)[I],
                            const result (&results)[R]) {
  std::array<int, 4 + 2 * S + 6 * I + 2 * R> words{lanes, static_cast<int>(S), static_cast<int>(I),
                                                   static_cast<int>(R)};
  std::size_t at = 4;
  const auto put = [&](auto... ws) { ((words[at++] = static_cast<int>(ws)), ...); };
  for (const source& s : sources) put(s.type, s.mode);
  for (const instruction& i : body) put(i.code, i.type, i.operand, i.a, i.b, i.c);
  for (const result& r : results) put(r.type, r.place);
  return words;
}

using enum source_mode;

constexpr auto f32_arithmetic = instructions(4, {{f32, contiguous}, {f32, contiguous}, {f32, repeated}, {f32, strided}},
                                             {{op::add, f32, f32, 0, 1},
                                              {op::sub, f32, f32, 0, 2},
                                              {op::mul, f32, f32, 1, 3},
                                              {op::div, f32, f32, 0, 3},
                                              {op::neg, f32, f32, 0},
                                              {op::abs, f32, f32, 1},
                                              {op::sign, f32, f32, 0},
                                              {op::square, f32, f32, 3},
                                              {op::sqrt, f32, f32, 9},
                                              {op::relu, f32, f32, 0},
                                              {op::max, f32, f32, 0, 1},
                                              {op::min, f32, f32, 3, 0},
                                              {op::copy, f32, f32, 14},
                                              {op::stop_gradient, f32, f32, 15}},
                                             {{f32, 4},
                                              {f32, 5},
                                              {f32, 6},
                                              {f32, 7},
                                              {f32, 8},
                                              {f32, 10},
                                              {f32, 11},
                                              {f32, 12},
                                              {f32, 13},
                                              {f32, 16},
                                              {f32, 17}});

constexpr auto f64_arithmetic = instructions(
    8, {{f64, contiguous}, {f64, strided}, {f64, repeated}},
    {{op::add, f64, f64, 0, 1},
     {op::sub, f64, f64, 0, 2},
     {op::mul, f64, f64, 1, 0},
     {op::div, f64, f64, 0, 1},
     {op::neg, f64, f64, 0},
     {op::abs, f64, f64, 1},
     {op::sign, f64, f64, 0},
     {op::square, f64, f64, 1},
     {op::sqrt, f64, f64, 8},
     {op::relu, f64, f64, 0},
     {op::max, f64, f64, 0, 1},
     {op::min, f64, f64, 1, 0}},
    {{f64, 3}, {f64, 4}, {f64, 5}, {f64, 6}, {f64, 9}, {f64, 10}, {f64, 11}, {f64, 12}, {f64, 13}, {f64, 14}});

constexpr auto i32_arithmetic =
    instructions(4, {{i32, contiguous}, {i32, strided}, {i32, count}, {i32, count_repeated}},
                 {{op::add, i32, i32, 0, 1},
                  {op::sub, i32, i32, 0, 2},
                  {op::mul, i32, i32, 0, 1},
                  {op::neg, i32, i32, 0},
                  {op::abs, i32, i32, 1},
                  {op::sign, i32, i32, 0},
                  {op::square, i32, i32, 1},
                  {op::relu, i32, i32, 0},
                  {op::max, i32, i32, 0, 3},
                  {op::min, i32, i32, 0, 1},
                  {op::lt, bool_, i32, 0, 2},
                  {op::select, i32, i32, 14, 0, 1}},
                 {{i32, 4},
                  {i32, 5},
                  {i32, 6},
                  {i32, 7},
                  {i32, 8},
                  {i32, 9},
                  {i32, 10},
                  {i32, 11},
                  {i32, 12},
                  {i32, 13},
                  {bool_, 14},
                  {i32, 15}});

constexpr auto u32_arithmetic =
    instructions(4, {{u32, contiguous}, {u32, repeated}, {u32, count}},
                 {{op::add, u32, u32, 0, 1},
                  {op::sub, u32, u32, 0, 1},
                  {op::mul, u32, u32, 0, 0},
                  {op::abs, u32, u32, 0},
                  {op::sign, u32, u32, 0},
                  {op::max, u32, u32, 0, 2},
                  {op::min, u32, u32, 0, 1},
                  {op::gt, bool_, u32, 0, 1},
                  {op::le, bool_, u32, 0, 2}},
                 {{u32, 3}, {u32, 4}, {u32, 5}, {u32, 6}, {u32, 7}, {u32, 8}, {u32, 9}, {bool_, 10}, {bool_, 11}});

constexpr auto logic =
    instructions(0, {{bool_, contiguous}, {bool_, strided}, {bool_, repeated}},
                 {{op::logical_and, bool_, bool_, 0, 1},
                  {op::logical_or, bool_, bool_, 0, 2},
                  {op::logical_not, bool_, bool_, 1},
                  {op::eq, bool_, bool_, 0, 1},
                  {op::ne, bool_, bool_, 0, 1},
                  {op::select, bool_, bool_, 0, 1, 2},
                  {op::copy, bool_, bool_, 0}},
                 {{bool_, 3}, {bool_, 4}, {bool_, 5}, {bool_, 6}, {bool_, 7}, {bool_, 8}, {bool_, 9}});

constexpr auto f32_choices =
    instructions(4, {{f32, contiguous}, {f32, contiguous}, {i32, contiguous}, {u32, contiguous}, {bool_, contiguous}},
                 {{op::eq, bool_, f32, 0, 1},
                  {op::ne, bool_, f32, 0, 1},
                  {op::lt, bool_, f32, 0, 1},
                  {op::le, bool_, f32, 0, 1},
                  {op::gt, bool_, f32, 0, 1},
                  {op::ge, bool_, f32, 0, 1},
                  {op::select, f32, f32, 7, 0, 1},
                  {op::convert, f32, bool_, 4},
                  {op::convert, f32, i32, 2},
                  {op::convert, i32, f32, 0},
                  {op::convert, u32, f32, 1},
                  {op::convert, f32, u32, 3},
                  {op::convert, i32, u32, 3},
                  {op::convert, u32, i32, 2},
                  {op::convert, bool_, f32, 0},
                  {op::convert, bool_, i32, 2},
                  {op::convert, i32, bool_, 4}},
                 {{bool_, 5},
                  {bool_, 6},
                  {bool_, 7},
                  {bool_, 8},
                  {bool_, 9},
                  {bool_, 10},
                  {f32, 11},
                  {f32, 12},
                  {f32, 13},
                  {i32, 14},
                  {u32, 15},
                  {f32, 16},
                  {i32, 17},
                  {u32, 18},
                  {bool_, 19},
                  {bool_, 20},
                  {i32, 21}});

constexpr auto f64_choices =
    instructions(8, {{f64, contiguous}, {f64, repeated}, {bool_, contiguous}},
                 {{op::eq, bool_, f64, 0, 1},
                  {op::ne, bool_, f64, 0, 1},
                  {op::lt, bool_, f64, 0, 1},
                  {op::ge, bool_, f64, 0, 1},
                  {op::select, f64, f64, 2, 0, 1},
                  {op::convert, f64, bool_, 2},
                  {op::convert, bool_, f64, 0},
                  {op::logical_and, bool_, bool_, 5, 9}},
                 {{bool_, 3}, {bool_, 4}, {bool_, 5}, {bool_, 6}, {f64, 7}, {f64, 8}, {bool_, 9}, {bool_, 10}});

template <dtype To, dtype From>
constexpr auto conversion = instructions(-1, {{From, strided}}, {{op::convert, To, From, 0}}, {{To, 1}});

constexpr auto counts = instructions(4, {{f32, count}, {f32, count_repeated}, {u32, count}},
                                     {{op::add, f32, f32, 0, 1}, {op::convert, f32, u32, 2}}, {{f32, 3}, {f32, 4}});

constexpr auto random_words = instructions(4, {{u32, contiguous}, {u32, repeated}, {u32, count}, {f32, contiguous}},
                                           {{op::threefry_bits, u32, u32, 0, 1, 2},
                                            {op::threefry_hi, u32, u32, 1, 0, 2},
                                            {op::threefry_lo, u32, u32, 1, 4, 0},
                                            {op::erf_inv, f32, f32, 3}},
                                           {{u32, 4}, {u32, 5}, {u32, 6}, {f32, 7}});

/// Arithmetic of a 16-bit type, its results among its operands: what a chain computes is what its steps would.
template <dtype D>
constexpr auto small_arithmetic =
    instructions(4, {{D, contiguous}, {D, strided}, {D, repeated}, {f32, contiguous}, {i32, contiguous}},
                 {{op::add, D, D, 0, 1},
                  {op::mul, D, D, 5, 2},
                  {op::sub, D, D, 6, 0},
                  {op::div, D, D, 7, 1},
                  {op::square, D, D, 1},
                  {op::sqrt, D, D, 9},
                  {op::neg, D, D, 0},
                  {op::max, D, D, 0, 6},
                  {op::relu, D, D, 8},
                  {op::lt, bool_, D, 0, 1},
                  {op::select, D, D, 14, 5, 1},
                  {op::convert, D, f32, 3},
                  {op::convert, f32, D, 5},
                  {op::convert, D, i32, 4},
                  {op::convert, i32, D, 0},
                  {op::convert, bool_, D, 1},
                  {op::convert, D, bool_, 14}},
                 {{D, 5},
                  {D, 6},
                  {D, 7},
                  {D, 8},
                  {D, 10},
                  {D, 11},
                  {D, 12},
                  {D, 13},
                  {bool_, 14},
                  {D, 15},
                  {D, 16},
                  {f32, 17},
                  {D, 18},
                  {i32, 19},
                  {bool_, 20},
                  {D, 21}});

template <op Code, dtype D>
constexpr auto unary_list = instructions(D == f32 ? 4 : 8, {{D, contiguous}}, {{Code, D, D, 0}}, {{D, 1}});

/// An array of any element type between guard pages, with numbers that matter among random ones.
struct any_array {
  dtype type;
  std::shared_ptr<void> holder;
  void* data = nullptr;
  std::int64_t size = 0;

  any_array(dtype d, std::int64_t n, edge side, unsigned seed) : type(d), size(n) {
    with_type([&]<class T>(T) {
      auto made = std::make_shared<kernel_test::guarded<T>>(n, side);
      kernel_test::fill_random(*made, seed);
      const std::vector<T> special = kernel_test::special_numbers<T>();
      std::mt19937 bits(seed + 1);
      for (T& x : *made)
        if (bits() % 3 == 0) x = special[bits() % special.size()];
      data = made->data();
      holder = made;
    });
  }
  template <class F>
  void with_type(F f) const {
    switch (type) {
      case f32: return f(float{});
      case f64: return f(double{});
      case i32: return f(std::int32_t{});
      case u32: return f(std::uint32_t{});
      case bf16: return f(bfloat16{});
      case f16: return f(float16{});
      default: return f(bool{});
    }
  }
  std::size_t bytes() const { return static_cast<std::size_t>(size * info(type).size); }
};

/// Bits are equal, or both are NaN.
bool same(const any_array& a, const any_array& b) {
  bool equal = true;
  a.with_type([&]<class T>(T) {
    const T* x = static_cast<const T*>(a.data);
    const T* y = static_cast<const T*>(b.data);
    for (std::int64_t i = 0; i < a.size; ++i)
      if (std::memcmp(x + i, y + i, sizeof(T)) != 0 && (x[i] == x[i] || y[i] == y[i])) equal = false;
  });
  return equal;
}

/// Everything a call needs, with arrays that end, or begin, at a guard page.
template <auto Words>
struct prepared {
  using code = kernels::fused_code<Words>;
  static constexpr int arrays = code::sources + code::results;

  std::vector<std::int64_t> extents;
  std::array<std::array<std::int64_t, 4>, arrays> strides{};
  std::vector<any_array> memory{};
  fused_call call{};

  prepared(std::vector<std::int64_t> e, edge side, unsigned seed) : extents(std::move(e)) {
    call.rank = static_cast<int>(extents.size());
    call.extents = extents.data();
    for (int i = 0; i < arrays; ++i) {
      const bool reads = i < code::sources;
      const source_mode mode = reads ? code::mode(i) : contiguous;
      auto& s = strides[static_cast<std::size_t>(i)];
      std::int64_t size = 1;
      if (mode == count) s[static_cast<std::size_t>(call.rank - 1)] = 1;
      else if (mode == count_repeated && call.rank > 1) s[0] = 1;
      else if (mode != count_repeated) size = lay_out(s, mode);
      call.strides[i] = s.data();
      call.base[i] = mode == count ? 5 : mode == count_repeated ? 100 : 0;
      const bool counts_only = mode == count || mode == count_repeated;
      memory.emplace_back(reads ? code::source_type(i) : code::result_type(i - code::sources), counts_only ? 0 : size,
                          side, seed + static_cast<unsigned>(i));
      call.data[i] = counts_only ? nullptr : memory.back().data;
    }
  }

  /// Row-major, the last dimension three apart or not at all; the first of several dimensions of a second source
  /// repeats.
  std::int64_t lay_out(std::array<std::int64_t, 4>& s, source_mode mode) const {
    std::int64_t next = 1;
    std::int64_t last = 0;
    for (int d = call.rank - 1; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(d);
      const bool inner = d == call.rank - 1;
      s[at] = inner && mode == repeated ? 0 : inner && mode == strided ? 3 : next;
      last += s[at] * (extents[at] - 1);
      next = last + 1;
    }
    return last + 1;
  }

  kernels::fused_range all() const { return {0, call.rows(), 0, call.columns()}; }
};

template <auto Words>
void run_naive(const fused_call& call) {
  std::vector<graph::word> words;
  for (int w : Words) words.push_back({w});
  kernels::naive::fused(words, call);
}

std::vector<std::int64_t> shape_of(std::int64_t n) {
  switch (n % 4) {
    case 0: return {n};
    case 1: return {3, n};
    case 2: return {2, 3, n};
    default: return {2, 1, 3, n};
  }
}

/// All results are those of the interpreter, bit for bit, at sizes 1 to 70 and 1000.
template <auto Words>
void check_exact() {
  for (std::int64_t n = 1; n <= 71; ++n)
    for (edge side : {edge::front, edge::back}) {
      const std::vector<std::int64_t> extents = shape_of(n > 70 ? 1000 : n);
      prepared<Words> tuned(extents, side, static_cast<unsigned>(n));
      prepared<Words> naive(extents, side, static_cast<unsigned>(n));
      kernels::fused_kernel<Words>::run(tuned.call, tuned.all());
      run_naive<Words>(naive.call);
      for (std::size_t i = 0; i < tuned.memory.size(); ++i) {
        INFO("array " << i << ", " << extents.back() << " columns, rank " << extents.size());
        CHECK(same(tuned.memory[i], naive.memory[i]));
      }
    }
}

/// One function of a vector, by its kernel.
template <auto Words>
std::vector<float> apply(std::vector<float> x) {
  std::vector<float> out(x.size());
  const auto n = static_cast<std::int64_t>(x.size());
  const std::int64_t stride = 1;
  fused_call call;
  call.rank = 1, call.extents = &n;
  void* arrays[] = {x.data(), out.data()};
  for (int i = 0; i < 2; ++i) call.data[i] = arrays[i], call.strides[i] = &stride, call.base[i] = 0;
  kernels::fused_kernel<Words>::run(call, {0, 1, 0, n});
  return out;
}

}  // namespace

TEST_CASE("arithmetic of float32 is exact") { check_exact<f32_arithmetic>(); }
TEST_CASE("arithmetic of float64 is exact") { check_exact<f64_arithmetic>(); }
TEST_CASE("arithmetic of int32 wraps around") { check_exact<i32_arithmetic>(); }
TEST_CASE("arithmetic of uint32 wraps around") { check_exact<u32_arithmetic>(); }
TEST_CASE("logic of bool") { check_exact<logic>(); }
TEST_CASE("comparisons, choices and conversions among 4-byte types") { check_exact<f32_choices>(); }
TEST_CASE("comparisons, choices and conversions among 8-byte types") { check_exact<f64_choices>(); }
TEST_CASE("conversions between types of different sizes") {
  check_exact<conversion<f32, f64>>();
  check_exact<conversion<f64, f32>>();
  check_exact<conversion<f64, i32>>();
  check_exact<conversion<i32, f64>>();
  check_exact<conversion<u32, f64>>();
  check_exact<conversion<f64, u32>>();
}
TEST_CASE("arithmetic of 16-bit numbers is rounded after each operation") {
  check_exact<small_arithmetic<bf16>>();
  check_exact<small_arithmetic<f16>>();
  check_exact<conversion<bf16, f64>>();
  check_exact<conversion<f64, f16>>();
}

TEST_CASE("positions are counted, along a row and from row to row") { check_exact<counts>(); }

TEST_CASE("random words and inverse error functions of any number of elements are those of one") {
  check_exact<random_words>();
}

TEST_CASE("a result may lie where a source lay") {
  static constexpr auto words = instructions(
      4, {{f32, contiguous}, {f32, contiguous}, {f32, repeated}},
      {{op::mul, f32, f32, 0, 2}, {op::add, f32, f32, 3, 1}, {op::sub, f32, f32, 0, 1}}, {{f32, 4}, {f32, 5}});
  for (std::int64_t n = 1; n <= 70; ++n) {
    prepared<words> apart({2, n}, edge::back, 5);
    prepared<words> in_place({2, n}, edge::back, 5);
    in_place.call.data[3] = in_place.call.data[0];
    in_place.call.data[4] = in_place.call.data[1];
    kernels::fused_kernel<words>::run(apart.call, apart.all());
    kernels::fused_kernel<words>::run(in_place.call, in_place.all());
    CHECK(same(apart.memory[3], in_place.memory[0]));
    CHECK(same(apart.memory[4], in_place.memory[1]));
  }
}

TEST_CASE("an element has the same bits wherever it stands") {
  std::mt19937 bits(11);
  std::vector<float> x(100);
  for (float& v : x) v = std::uniform_real_distribution<float>(-6, 6)(bits);
  const auto check = [&]<op Code>() {
    const std::vector<float> whole = apply<unary_list<Code, f32>>(x);
    for (std::size_t from = 0; from < x.size(); ++from)
      for (std::size_t size : {std::size_t{1}, std::size_t{5}, std::size_t{16}, std::size_t{23}}) {
        const std::size_t to = std::min(from + size, x.size());
        const std::vector<float> part = apply<unary_list<Code, f32>>(
            std::vector(x.begin() + static_cast<std::ptrdiff_t>(from), x.begin() + static_cast<std::ptrdiff_t>(to)));
        CHECK(std::memcmp(part.data(), whole.data() + from, part.size() * sizeof(float)) == 0);
      }
  };
  check.operator()<op::exp>();
  check.operator()<op::log1p>();
  check.operator()<op::rsqrt>();
  check.operator()<op::cos>();
  check.operator()<op::tanh>();
  check.operator()<op::logistic>();
  check.operator()<op::gelu>();
  check.operator()<op::erf>();
  check.operator()<op::sin>();
}

TEST_CASE("ranges of rows and columns together make the whole") {
  prepared<f32_arithmetic> whole({5, 100}, edge::back, 3);
  prepared<f32_arithmetic> parts({5, 100}, edge::back, 3);
  kernels::fused_kernel<f32_arithmetic>::run(whole.call, whole.all());
  for (std::int64_t row = 0; row < 5; row += 2)
    for (std::int64_t column = 0; column < 100; column += 37)
      kernels::fused_kernel<f32_arithmetic>::run(
          parts.call, {row, std::min<std::int64_t>(row + 2, 5), column, std::min<std::int64_t>(column + 37, 100)});
  for (std::size_t i = 0; i < whole.memory.size(); ++i) CHECK(same(whole.memory[i], parts.memory[i]));
}
