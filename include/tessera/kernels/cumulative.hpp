// SPDX-License-Identifier: Apache-2.0
// Running sums, products, extrema and linear recurrences along one axis.
#pragma once

#include <tessera/kernels/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tessera::kernels {

/// What is carried along. `lag` gives the element before, 0 at the start.
enum class cumulative_kind : std::uint8_t { sum, prod, max, min, logsumexp, lag };

/// Arrays (outer, n, inner); the axis of extent n is walked along, from its end if `reverse`.
struct axis_walk {
  std::int64_t outer = 1, n = 1, inner = 1;
  bool reverse = false;
};

namespace detail {

/// float32 is carried in float64, integers wrap around in uint32.
template <class T>
using carried = std::conditional_t<std::is_floating_point_v<T>, double,
                                   std::conditional_t<std::is_integral_v<T>, std::uint32_t, T>>;

template <class T>
struct carry_sum {
  carried<T> total{0};
  T operator()(T x) { return static_cast<T>(total = total + static_cast<carried<T>>(x)); }
};

template <class T>
struct carry_product {
  carried<T> total{1};
  T operator()(T x) { return static_cast<T>(total = total * static_cast<carried<T>>(x)); }
};

/// NaN, once met, stays.
template <class T, bool Max>
struct carry_extremum {
  T best = Max ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  bool started = false;
  T operator()(T x) {
    if (!started || (best == best && (x != x || (Max ? x > best : x < best)))) best = x;
    started = true;
    return best;
  }
};

/// The sum is kept relative to the largest element so far; NaN, once met, stays.
template <class T>
struct carry_logsumexp {
  double top = -std::numeric_limits<double>::infinity();
  double sum = 0;
  T operator()(T element) {
    const auto x = static_cast<double>(element);
    if (x != x || top != top) {
      top = x != x ? x : top;
    } else if (x > top) {
      sum = (sum == 0 ? 0 : sum * std::exp(top - x)) + 1;
      top = x;
    } else if (!std::isinf(x) && !std::isinf(top)) {
      sum += std::exp(x - top);
    }
    return static_cast<T>(std::isinf(top) || top != top ? top : top + std::log(sum));
  }
};

template <class T>
struct carry_lag {
  T last{0};
  T operator()(T x) {
    const T before = last;
    last = x;
    return before;
  }
};

/// Columns that one task carries side by side.
inline constexpr std::int64_t columns_together = 64;

/// Calls walk(first element, columns) for each part of the array; a part is walked along by one task.
template <class F>
void for_each_walk(const axis_walk& w, bool parallel, F&& walk) {
  const std::int64_t parts = (w.inner + columns_together - 1) / columns_together;
  parallel_for(w.outer * parts, parallel, [&](std::int64_t task) {
    const std::int64_t column = task % parts * columns_together;
    walk(task / parts * w.n * w.inner + column, std::min(columns_together, w.inner - column));
  });
}

template <class Carry, class T>
void walk_along(const axis_walk& w, const T* in, T* out, bool parallel) {
  for_each_walk(w, parallel, [&](std::int64_t first, std::int64_t columns) {
    Carry carry[columns_together]{};
    for (std::int64_t i = 0; i < w.n; ++i) {
      const std::int64_t at = first + (w.reverse ? w.n - 1 - i : i) * w.inner;
      for (std::int64_t c = 0; c < columns; ++c) out[at + c] = carry[c](in[at + c]);
    }
  });
}

}  // namespace detail

/// out[o, i, c] = in[o, 0, c] op ... op in[o, i, c], or from the end. Sums and products of float32 are carried in
/// float64, those of integers wrap around; extrema and logsumexp are NaN from the first NaN on. One element after the
/// other, so bits depend on no thread. `out` may be `in`.
template <class T>
void cumulative(cumulative_kind kind, const axis_walk& w, const T* in, T* out, bool parallel) {
  switch (kind) {
    case cumulative_kind::sum: return detail::walk_along<detail::carry_sum<T>>(w, in, out, parallel);
    case cumulative_kind::prod: return detail::walk_along<detail::carry_product<T>>(w, in, out, parallel);
    case cumulative_kind::max: return detail::walk_along<detail::carry_extremum<T, true>>(w, in, out, parallel);
    case cumulative_kind::min: return detail::walk_along<detail::carry_extremum<T, false>>(w, in, out, parallel);
    case cumulative_kind::lag: return detail::walk_along<detail::carry_lag<T>>(w, in, out, parallel);
    case cumulative_kind::logsumexp:
      if constexpr (std::is_floating_point_v<T>) detail::walk_along<detail::carry_logsumexp<T>>(w, in, out, parallel);
      return;
  }
}

/// out[o, i, c] = a[o, i, c] out[o, i - 1, c] + b[o, i, c], out[o, 0, c] = b[o, 0, c], or from the end; with `shifted`
/// the factor is a[o, i - 1, c]. Carried in float64. `out` may be `b`.
template <class T>
void recurrence(const axis_walk& w, bool shifted, const T* a, const T* b, T* out, bool parallel) {
  detail::for_each_walk(w, parallel, [&](std::int64_t first, std::int64_t columns) {
    double carry[detail::columns_together]{};
    for (std::int64_t i = 0; i < w.n; ++i) {
      const std::int64_t at = first + (w.reverse ? w.n - 1 - i : i) * w.inner;
      const std::int64_t factor = shifted ? at + (w.reverse ? w.inner : -w.inner) : at;
      for (std::int64_t c = 0; c < columns; ++c) {
        const double before = i == 0 ? 0 : static_cast<double>(a[factor + c]) * carry[c];
        carry[c] = i == 0 ? static_cast<double>(b[at + c]) : before + static_cast<double>(b[at + c]);
        out[at + c] = static_cast<T>(carry[c]);
      }
    }
  });
}

}  // namespace tessera::kernels
