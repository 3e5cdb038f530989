// SPDX-License-Identifier: Apache-2.0
// Lines that fused kernels combine in registers have the bits of lines in memory.
#include <tessera/kernels/fused_line.hpp>

#include "support.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

using namespace tessera;
using kernels::reduce_kind;

namespace {

/// x (y + c), where x and y lie in memory and c is repeated.
template <dtype D>
constexpr auto product_of_sums() {
  using enum graph::source_mode;
  const auto word = [](auto w) { return static_cast<int>(w); };
  return std::array{word(info(D).size),
                    3,
                    2,
                    1,
                    word(D),
                    word(contiguous),
                    word(D),
                    word(contiguous),
                    word(D),
                    word(repeated),
                    word(graph::op::add),
                    word(D),
                    word(D),
                    1,
                    2,
                    -1,
                    word(graph::op::mul),
                    word(D),
                    word(D),
                    0,
                    3,
                    -1,
                    word(D),
                    4};
}

/// What reduce_made asks for, by the kernel itself or a leaf at a time.
template <auto Words, reduce_kind Kind>
struct line {
  using T = typename kernels::fused_line<Words, Kind>::element;
  kernels::fused_call call;
  bool in_registers;

  bool combines() const { return in_registers; }
  void combine(std::int64_t first, std::int64_t count, T* lanes) const {
    kernels::fused_line<Words, Kind>::run(call, {0, 1, first, first + count, lanes});
  }
  void operator()(std::int64_t first, std::int64_t count, T* to) {
    call.data[3] =
        reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(to) - static_cast<std::uintptr_t>(first) * sizeof(T));
    kernels::fused_line<Words, Kind>::run(call, {0, 1, first, first + count});
  }
};

template <dtype D, reduce_kind Kind>
void check_line(std::int64_t n, storage_t<D> odd_one) {
  using T = storage_t<D>;
  const std::int64_t stride = 1, none = 0;
  for (const kernel_test::edge side : kernel_test::edges) {
    kernel_test::guarded<T> x(n, side), y(n, side), c(1, side);
    for (std::int64_t i = 0; i < n; ++i) x[i] = T(1 + i % 7) / T(5), y[i] = T(i % 11) / T(9) - T(0.5);
    x[n / 3] = odd_one;
    c[0] = T(0.75);
    line<product_of_sums<D>(), Kind> made{{}, false};
    made.call.rank = 1, made.call.extents = &n;
    T* const arrays[] = {x.data(), y.data(), c.data(), nullptr};
    for (int a = 0; a < 4; ++a)
      made.call.data[a] = arrays[a], made.call.strides[a] = a == 2 ? &none : &stride, made.call.base[a] = 0;
    T expected{}, found{};
    kernels::reduce_made<T>(Kind, made, &expected, n, false);
    made.in_registers = true;
    kernel_test::on_threads(2, [&] { kernels::reduce_made<T>(Kind, made, &found, n, true); });
    INFO(n << " elements");
    CHECK(kernel_test::same_bits(&found, &expected, 1));
  }
}

template <dtype D, reduce_kind Kind>
void check_lines() {
  using limits = std::numeric_limits<storage_t<D>>;
  constexpr std::int64_t least = 512 * 256 / info(D).size;
  for (const std::int64_t n : {least, least + 1, least + 777, 3 * least + 65})
    for (const auto odd_one :
         {storage_t<D>{1}, -storage_t<D>{0}, limits::infinity(), limits::quiet_NaN(), limits::denorm_min()})
      check_line<D, Kind>(n, odd_one);
}

}  // namespace

TEST_CASE("lines combined in registers have the bits of lines in memory") {
  check_lines<f32, reduce_kind::sum>();
  check_lines<f32, reduce_kind::max>();
  check_lines<f64, reduce_kind::sum>();
  check_lines<f64, reduce_kind::min>();
  check_lines<f64, reduce_kind::prod>();
}
