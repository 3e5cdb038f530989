// SPDX-License-Identifier: Apache-2.0
// Random numbers within a step: keys, how they split, and arrays drawn from them.
#pragma once

#include <tessera/core/number_text.hpp>
#include <tessera/graph/layout.hpp>
#include <tessera/graph/position.hpp>
#include <tessera/ops/math.hpp>
#include <tessera/ops/reduction.hpp>
#include <tessera/ops/sort.hpp>
#include <tessera/random/distributions.hpp>
#include <tessera/random/erf.hpp>

#include <array>

namespace tessera::random {

namespace detail {

using graph::op;
using graph::value;

/// A key is uint32[..., 2], whatever is in front are keys side by side.
constexpr message key_fault(const aval& key) {
  const bool fits = key.type == dtype::u32 && key.rank > 0 && key.dims[key.rank - 1] == dim{2, 0};
  return fits ? message::none : message::random_key;
}

/// The two words of keys, as arrays of extent 1 along `rank` dimensions behind those of the keys.
struct key_words {
  value hi;
  value lo;

  constexpr key_words(value key, int rank) : hi(word(key, 0, rank)), lo(word(key, 1, rank)) {}

  static constexpr value word(value key, std::int64_t which, int rank) {
    const aval type = key.type();
    sharding::slices taken = sharding::everything(type);
    taken.of[type.rank - 1] = {which, 1, 1};
    aval target = type;
    target.rank = type.rank - 1 + rank;
    for (int d = type.rank - 1; d < max_rank; ++d) target.dims[d] = d < target.rank ? dim{1, 0} : dim{};
    return graph::reshape(graph::slice(key, taken), target);
  }
};

/// One word of the hash of the counter (0, `counter`).
constexpr value hash(op which, const key_words& key, value counter) {
  const aval operands[] = {key.hi.type(), key.lo.type(), counter.type()};
  const aval type = graph::expect(sharding::elementwise(operands, counter.mesh()));
  return graph::write(counter.owner, which, type,
                      {graph::pad_rank(key.hi, type.rank).id, graph::pad_rank(key.lo, type.rank).id,
                       graph::pad_rank(counter, type.rank).id});
}

/// Keys of two words side by side, whose last dimension has extent 1.
constexpr value join_words(value hi, value lo) {
  aval pair = hi.type();
  pair.dims[pair.rank - 1] = {2, 0};
  const value place = graph::position(hi.owner, pair, pair.rank - 1, dtype::u32);
  return graph::select(graph::binary(op::eq, place, graph::number_like(place, 0)), hi, lo);
}

/// The keys that a counter gives each key, or the key and data of fold_in.
constexpr value child(value key, value counter) {
  const key_words words(key, 1);
  return join_words(hash(op::threefry_hi, words, counter), hash(op::threefry_lo, words, counter));
}

inline constexpr auto key_rule = [](std::span<const aval> x, const mesh_value&) {
  const message why = key_fault(x[0]);
  return why == message::none ? ruling{x[0]} : refuse(why);
};

/// The row-major number of each element behind the keys, cut as `type` is.
constexpr value counters(graph::graph* owner, const aval& type, int first) {
  value total = graph::constant(owner, dtype::u32, 0);
  std::int64_t stride = 1;
  for (int d = type.rank - 1; d >= first; --d) {
    if (type.dims[d].extent == 1) continue;
    const value here = graph::position(owner, type, d, dtype::u32, type.dims[d].axes);
    total = stride == 1 ? here : total + here * static_cast<double>(stride);
    stride *= type.dims[d].extent;
  }
  return total;
}

template <class Shape, dtype D, class OutSpec>
inline constexpr auto draw_rule = [](std::span<const aval> x, const mesh_value& mesh) {
  if (const message why = key_fault(x[0]); why != message::none) return refuse(why);
  if (x[0].rank - 1 + Shape::rank > max_rank) return refuse(message::shape_rank);
  if (is_sixteen_bit(D)) return refuse(message::random_sixteen_bits);
  aval type = x[0];
  type.type = D;
  type.rank = x[0].rank - 1;
  type.dims[type.rank] = {};
  std::int64_t size = 1;
  for (int d = 0; d < Shape::rank; ++d) {
    const std::int64_t extent = Shape::extents[static_cast<std::size_t>(d)];
    if (extent < 0) return refuse(message::shape_extent, d);
    if (extent > 0 && size > (std::int64_t{1} << 32) / extent) return refuse(message::random_size);
    size *= extent;
    type.dims[type.rank++] = {extent, 0};
  }
  const ops::chosen_spec<OutSpec> chosen(mesh);
  return chosen.get() == nullptr ? ruling{type} : with_spec(type, *chosen.get(), mesh);
};

/// What a distribution is made of: the keys, the type of the array to draw and the counter of each element.
struct source {
  value key;
  aval type;
  value counter;

  constexpr source(value keys, const aval& drawn)
      : key(keys), type(drawn), counter(counters(keys.owner, drawn, keys.type().rank - 1)) {}

  constexpr int rank() const { return type.rank - (key.type().rank - 1); }
  /// A word an element, from these keys; broadcast and cut as the array is.
  constexpr value word(op which, value keys) const {
    aval as_words = type;
    as_words.type = dtype::u32;
    const value drawn = hash(which, key_words(keys, rank()), counter);
    if (drawn.type() == as_words) return drawn;
    const value padded = graph::pad_rank(drawn, as_words.rank);
    return graph::reshard(
        graph::broadcast(padded, natural(padded.type(), as_words), graph::dims_in_order(padded.type().rank)), as_words);
  }
  constexpr value word(op which) const { return word(which, key); }

  /// `to` with the cuts of `from` where that is not stretched.
  static constexpr aval natural(const aval& from, aval to) {
    for (int d = 0; d < to.rank; ++d)
      if (from.rank == to.rank && from.dims[d].extent == to.dims[d].extent) to.dims[d].axes = from.dims[d].axes;
    return to;
  }

  /// The top bits, 23 or 52, as a whole number: of the fraction that bit patterns give. Every step is exact.
  template <RandomReal T>
  constexpr value whole() const {
    if constexpr (std::same_as<T, float>) {
      // By way of int32, from which every machine converts in one instruction.
      return graph::convert(graph::convert(shifted(word(op::threefry_bits), 9), dtype::i32), dtype::f32);
    } else {
      const value high = graph::convert(word(op::threefry_hi), dtype::f64) * 0x1p20;
      return high + graph::convert(shifted(word(op::threefry_lo), 12), dtype::f64);
    }
  }
  template <RandomReal T>
  static constexpr T resolution = std::numeric_limits<T>::epsilon();
  static constexpr value shifted(value bits, double by) {
    return graph::binary(op::shift_right, bits, graph::number_like(bits, by));
  }
  /// scaled_unit(lo, span), for span >= 0, with which no rounding leads below lo. A power of two changes no digit, so
  /// that one product is enough for the fraction and the span, unless it is subnormal.
  template <RandomReal T>
  constexpr value scaled(T lo, T span) const {
    const T step = span * resolution<T>;
    const bool exact = step / resolution<T> == span;
    value spread = whole<T>() * static_cast<double>(exact ? step : resolution<T>);
    if (!exact) spread = spread * static_cast<double>(span);
    return lo == 0 ? spread : spread + static_cast<double>(lo);
  }
  /// Whether the top bits as a fraction are below p: whole words are compared, so that nothing is shifted or converted.
  constexpr value below(float p) const {
    constexpr std::uint32_t all = 1U << 23;
    const float scaled = p * static_cast<float>(all);
    auto first = static_cast<std::uint32_t>(scaled);
    if (static_cast<float>(first) < scaled) ++first;
    const value bits = word(op::threefry_bits);
    const value compared = first == all ? shifted(bits, 9) : bits;
    const double limit = static_cast<double>(first) * (first == all ? 1 : 512);
    return graph::binary(op::lt, compared, graph::number_like(compared, limit));
  }
  template <RandomReal T>
  static constexpr value from_unit(value u) {
    return graph::unary(op::erf_inv, u) * static_cast<double>(std::numbers::sqrt2_v<T>);
  }
};

/// Draws an array: `Distribution(source) -> value`, whose bounds were checked.
template <text Name, class Shape, dtype D, class Distribution, class... Options>
constexpr auto draw(const ArrayLike auto& key, const Distribution& distribution, Options...) {
  using spec = typename ops::spec_among<Options...>::type;
  return ops::apply<Name, draw_rule<Shape, D, spec>>(
      [&](const std::array<value, 1>& k, const aval& type) { return distribution(source(k[0], type)); }, key);
}

template <dtype D>
requires(is_floating(D)) struct uniform_of {
  using T = compute_t<storage_t<D>>;
  T lo;
  T hi;
  constexpr uniform_of(double low, double high) : lo(static_cast<T>(low)), hi(static_cast<T>(high)) {
    static_cast<void>(uniform_distribution<T>(lo, hi));  // checks the bounds
  }
  constexpr value operator()(const source& from) const { return from.scaled<T>(lo, hi - lo); }
};

template <dtype D>
requires(is_floating(D)) struct normal_of {
  using T = compute_t<storage_t<D>>;
  constexpr value operator()(const source& from) const {
    constexpr T lowest = normal_distribution<T>::lowest;
    return source::from_unit<T>(from.scaled<T>(lowest, 1 - lowest));
  }
};

template <dtype D>
requires(is_floating(D)) struct truncated_normal_of {
  using T = compute_t<storage_t<D>>;
  truncated_normal_distribution<T> bounds;
  constexpr truncated_normal_of(double low, double high) : bounds(static_cast<T>(low), static_cast<T>(high)) {}
  constexpr value operator()(const source& from) const {
    const value drawn = source::from_unit<T>(from.scaled<T>(bounds.unit.lo, bounds.unit.span));
    const value least = graph::number_like(drawn, static_cast<double>(bounds.least()));
    const value most = graph::number_like(drawn, static_cast<double>(bounds.most()));
    return graph::binary(op::min, graph::binary(op::max, drawn, least), most);
  }
};

template <dtype D>
requires(D == dtype::i32 || D == dtype::u32) struct integers_of {
  std::uint32_t lo;
  std::uint32_t span;
  constexpr integers_of(std::int64_t low, std::int64_t high)
      : lo(static_cast<std::uint32_t>(low)), span(static_cast<std::uint32_t>(high - low)) {
    using T = storage_t<D>;
    if (low < std::numeric_limits<T>::min() || high > std::numeric_limits<T>::max() || low >= high)
      throw_bad_range("randint", low, high, "ascending, not empty and within the element type");
  }
  /// See random::integers.
  constexpr value operator()(const source& from) const {
    const auto part = [&](double which) {
      const value counter = graph::number_like(from.counter, which);
      const value word = from.word(op::threefry_bits, child(from.key, counter));
      return graph::binary(op::mod, word, graph::number_like(word, span));
    };
    const std::uint32_t half = (1U << 16) % span;
    const value high = part(0) * static_cast<double>(half * half % span);
    const value sum = high + part(1);
    const value offset = graph::binary(op::mod, sum, graph::number_like(sum, span)) + static_cast<double>(lo);
    return graph::convert(offset, D);
  }
};

}  // namespace detail

/// A key within a step from a seed, int32 or uint32: uint32[2], the words (0, seed); of an array of seeds, keys side by
/// side. The same as `make_key` outside for seeds of 0 and more; a negative one counts as its 32 bits. Source:
/// jax.random.PRNGKey.
constexpr auto make_key(const ArrayLike auto& seed) {
  constexpr auto rule = [](std::span<const aval> x, const mesh_value&) {
    if (x[0].type != dtype::i32 && x[0].type != dtype::u32) return refuse(message::elementwise_needs_integer);
    if (x[0].rank == max_rank) return refuse(message::shape_rank);
    ruling ruled{x[0]};
    ruled.result.type = dtype::u32;
    ruled.result.dims[ruled.result.rank++] = {2, 0};
    return ruled;
  };
  return ops::apply<"make_key", rule>(
      [](const std::array<graph::value, 1>& v, const aval& type) {
        aval column = type;
        column.dims[column.rank - 1] = {1, 0};
        const graph::value low = graph::reshape(graph::convert(v[0], dtype::u32), column);
        return detail::join_words(graph::full(v[0].owner, column, 0), low);
      },
      seed);
}

/// The key that depends on a key and on data, an int32 or uint32 scalar or a number. As `fold_in` outside a step.
/// Source: jax.random.fold_in.
template <ArrayLike Key, Operand Data>
constexpr auto fold_in(const Key& key, const Data& data) {
  constexpr auto rule = [](std::span<const aval> x, const mesh_value&) {
    if (const message why = detail::key_fault(x[0]); why != message::none) return refuse(why);
    if (x[1].type != dtype::i32 && x[1].type != dtype::u32) return refuse(message::elementwise_needs_integer);
    return x[1].rank == 0 ? ruling{x[0]} : refuse(message::elementwise_shape);
  };
  return ops::apply<"fold_in", rule>([](const std::array<graph::value, 2>& v,
                                        const aval&) { return detail::child(v[0], graph::convert(v[1], dtype::u32)); },
                                     key, data);
}

/// N independent keys, `auto [next, use] = random::split(key)`; child i does not depend on N. As `split` outside a
/// step.
/// Source: jax.random.split.
template <std::size_t N = 2>
constexpr auto split(const ArrayLike auto& key) {
  const auto child = [&](std::size_t i) {
    return ops::apply<"split", detail::key_rule>(
        [i](const std::array<graph::value, 1>& v, const aval&) {
          return detail::child(v[0], graph::constant(v[0].owner, dtype::u32, static_cast<double>(i)));
        },
        key);
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::array{child(I)...}; }
  (std::make_index_sequence<N>{});
}

/// `bits<shape<8, 12>>(key)`: 32 random bits an element, uint32. They depend on the key and on the row-major position
/// alone, so that every mesh and every cut gives the same ones as `bits32_at` outside a step. Uncut unless
/// `out_sharding<P<...>>` says otherwise: each device then draws its own part. Of several keys (uint32[..., 2]) the
/// result has their dimensions in front, cut as they are. No gradient, no collective. Source: jax.random.bits,
/// partitionable.
template <class Shape>
constexpr auto bits(const ArrayLike auto& key, OutSharding auto... options) {
  return detail::draw<"random::bits", Shape, dtype::u32>(
      key, [](const detail::source& from) { return from.word(graph::op::threefry_bits); }, options...);
}

/// `uniform<shape<8, 12>>(key, lo, hi)`: uniform on [lo, hi), float32 (or `uniform<shape<...>, f64>`); the numbers of
/// `uniform_distribution`, bit for bit. Bounds that it refuses stop the trace. Shapes and cuts as in `bits`. Source:
/// jax.random.uniform.
template <class Shape, dtype D = dtype::f32>
constexpr auto uniform(const ArrayLike auto& key, double lo, double hi, OutSharding auto... options) {
  return detail::draw<"random::uniform", Shape, D>(key, detail::uniform_of<D>(lo, hi), options...);
}
template <class Shape, dtype D = dtype::f32>
constexpr auto uniform(const ArrayLike auto& key, OutSharding auto... options) {
  return uniform<Shape, D>(key, 0, 1, options...);
}

/// Standard normal numbers, those of `normal_distribution`. Source: jax.random.normal.
template <class Shape, dtype D = dtype::f32>
constexpr auto normal(const ArrayLike auto& key, OutSharding auto... options) {
  return detail::draw<"random::normal", Shape, D>(key, detail::normal_of<D>{}, options...);
}

/// Normal numbers within (lo, hi), those of `truncated_normal_distribution`. Source: jax.random.truncated_normal.
template <class Shape, dtype D = dtype::f32>
constexpr auto truncated_normal(const ArrayLike auto& key, double lo, double hi, OutSharding auto... options) {
  return detail::draw<"random::truncated_normal", Shape, D>(key, detail::truncated_normal_of<D>(lo, hi), options...);
}
template <class Shape, dtype D = dtype::f32>
constexpr auto truncated_normal(const ArrayLike auto& key, OutSharding auto... options) {
  return truncated_normal<Shape, D>(key, -2, 2, options...);
}

/// bool, true with probability p: those of `bernoulli_distribution`. Source: jax.random.bernoulli.
template <class Shape>
constexpr auto bernoulli(const ArrayLike auto& key, double p, OutSharding auto... options) {
  static_cast<void>(bernoulli_distribution(p));  // checks p
  return detail::draw<"random::bernoulli", Shape, dtype::bool_>(
      key, [p](const detail::source& from) { return from.below(static_cast<float>(p)); }, options...);
}
template <class Shape>
constexpr auto bernoulli(const ArrayLike auto& key, OutSharding auto... options) {
  return bernoulli<Shape>(key, 0.5, options...);
}

/// int32 (or uint32) in [lo, hi): the numbers of `integers`. Source: jax.random.randint.
template <class Shape, dtype D = dtype::i32>
constexpr auto randint(const ArrayLike auto& key, std::int64_t lo, std::int64_t hi, OutSharding auto... options) {
  return detail::draw<"random::randint", Shape, D>(key, detail::integers_of<D>(lo, hi), options...);
}

namespace detail {

/// Rounds of sorting by random words after which ties are harmless: ceil(3 ln n / ln(2^32 - 1)); n^3 <= (2^32 - 1)^r.
constexpr int permutation_rounds(std::int64_t n) {
  constexpr long double most = 4294967295.0L;
  const long double cube = static_cast<long double>(n) * static_cast<long double>(n) * static_cast<long double>(n);
  int rounds = 0;
  for (long double reached = 1; reached < cube; reached *= most) ++rounds;
  return rounds;
}

template <std::int64_t N>
inline constexpr auto permutation_rule = [](std::span<const aval> x, const mesh_value&) {
  if (const message why = key_fault(x[0]); why != message::none || x[0].rank != 1) return refuse(message::random_key);
  if (N < 0) return refuse(message::shape_extent, 0);
  if (N > std::numeric_limits<std::int32_t>::max()) return refuse(message::reduce_index);
  ruling ruled{scalar_aval(dtype::i32)};
  ruled.result.dims[ruled.result.rank++] = {N, 0};
  return ruled;
};

inline constexpr auto write_permutation = [](const std::array<value, 1>& k, const aval& type) {
  value key = k[0];
  aval words = type;
  words.type = dtype::u32;
  value order = graph::position(key.owner, type, 0, dtype::i32);
  for (int round = permutation_rounds(type.dims[0].extent); round > 0; --round) {
    const value next = child(key, graph::constant(key.owner, dtype::u32, 0));
    const value subkey = child(key, graph::constant(key.owner, dtype::u32, 1));
    const value drawn = source(subkey, words).word(op::threefry_bits);
    order = ops::in_order(order, graph::argsort(drawn, 0, type.dims[0].extent, false), 0);
    key = next;
  }
  return order;
};

}  // namespace detail

/// `permutation<100>(key)`: int32, 0 ... 99 in random order, the one that `permutation(key, 100)` gives outside a step.
/// Uncut. Source: jax.random.permutation.
template <std::int64_t N>
constexpr auto permutation(const ArrayLike auto& key) {
  return ops::apply<"random::permutation", detail::permutation_rule<N>>(detail::write_permutation, key);
}

}  // namespace tessera::random
