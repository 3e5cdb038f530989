// SPDX-License-Identifier: Apache-2.0
// The naive twins of kernels that walk along one axis.
#pragma once

#include <tessera/kernels/argsort.hpp>
#include <tessera/kernels/cumulative.hpp>

#include <numeric>

namespace tessera::kernels::naive {

/// out[o, i, c] = in[o, 0, c] + ... + in[o, i, c], each computed from the start.  o: outer, i: n, c: inner.
template <class T>
void cumulative(cumulative_kind kind, const axis_walk& w, const T* in, T* out, bool = false) {
  for (std::int64_t o = 0; o < w.outer; ++o)
    for (std::int64_t c = 0; c < w.inner; ++c)
      for (std::int64_t i = 0; i < w.n; ++i) {
        const auto element = [&](std::int64_t j) {
          return in[(o * w.n + (w.reverse ? w.n - 1 - j : j)) * w.inner + c];
        };
        long double sum = 0, product = 1, powers = 0;
        T best = element(0);
        bool undefined = false;
        for (std::int64_t j = 0; j <= i; ++j) {
          const T x = element(j);
          undefined |= x != x;
          if (kind == cumulative_kind::max ? x > best : x < best) best = x;
          sum += static_cast<long double>(x);
          product *= static_cast<long double>(x);
          powers += std::exp(static_cast<long double>(x));
        }
        T& to = out[(o * w.n + (w.reverse ? w.n - 1 - i : i)) * w.inner + c];
        switch (kind) {
          case cumulative_kind::sum: to = static_cast<T>(sum); break;
          case cumulative_kind::prod: to = static_cast<T>(product); break;
          case cumulative_kind::logsumexp: to = static_cast<T>(std::log(powers)); break;
          case cumulative_kind::lag: to = i == 0 ? T(0) : element(i - 1); break;
          default: to = undefined ? std::numeric_limits<T>::quiet_NaN() : best; break;
        }
      }
}

/// out[o, i, c] = a[o, i, c] out[o, i - 1, c] + b[o, i, c].  o: outer, i: n, c: inner.
template <class T>
void recurrence(const axis_walk& w, bool shifted, const T* a, const T* b, T* out, bool = false) {
  for (std::int64_t o = 0; o < w.outer; ++o)
    for (std::int64_t c = 0; c < w.inner; ++c) {
      const auto place = [&](std::int64_t i) { return (o * w.n + (w.reverse ? w.n - 1 - i : i)) * w.inner + c; };
      long double carry = 0;
      for (std::int64_t i = 0; i < w.n; ++i) {
        carry = i == 0 ? 0 : static_cast<long double>(a[place(shifted ? i - 1 : i)]) * carry;
        carry += static_cast<long double>(b[place(i)]);
        out[place(i)] = static_cast<T>(carry);
      }
    }
}

/// Places sorted by their elements.  o: outer, i: n, c: inner.
template <class T>
void argsort(const argsort_problem& p, const T* in, std::int32_t* out, bool = false) {
  for (std::int64_t o = 0; o < p.outer; ++o)
    for (std::int64_t c = 0; c < p.inner; ++c) {
      std::vector<std::int32_t> places(static_cast<std::size_t>(p.n));
      std::iota(places.begin(), places.end(), 0);
      std::stable_sort(places.begin(), places.end(), [&](std::int32_t a, std::int32_t b) {
        const T x = in[(o * p.n + a) * p.inner + c];
        const T y = in[(o * p.n + b) * p.inner + c];
        return p.descending ? (x != x && y == y) || x > y : (x == x && y != y) || x < y;
      });
      for (std::int64_t j = 0; j < p.k; ++j) out[(o * p.k + j) * p.inner + c] = places[static_cast<std::size_t>(j)];
    }
}

}  // namespace tessera::kernels::naive
