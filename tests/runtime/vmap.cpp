// SPDX-License-Identifier: Apache-2.0
// A mapped function gives what single calls give side by side, on any mesh, and so do its gradients.
#include "runtime/support.hpp"

#include <tessera/analysis/summary.hpp>
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <tuple>

using namespace runtime_test;
namespace ts = tessera;
using numbers = std::vector<double>;

namespace {

constexpr std::int64_t examples = 4;

template <std::int64_t Devices>
using across = mesh<axis<"data", Devices>>;

/// An argument that all examples share, and one of which each example has its own along the first dimension.
template <dtype D, std::int64_t... Extents>
struct shared {
  static constexpr dtype element = D;
  static constexpr bool mapped = false;
  static constexpr auto axis = none;
  static constexpr std::int64_t size = (Extents * ... * 1);
  template <class M>
  using one = expr<plain_aval<D, shape<Extents...>>(), M>;
  template <class M>
  using whole = one<M>;
  double low = -2, high = 2;
};
template <dtype D, std::int64_t... Extents>
struct own : shared<D, Extents...> {
  static constexpr bool mapped = true;
  static constexpr auto axis = 0;
  static constexpr aval cut(const mesh_value& m) {
    aval type = plain_aval<D, shape<examples, Extents...>>();
    if (m.size(0) > 1) type.dims[0].axes = axis_append(0, 0);
    return type;
  }
  template <class M>
  using whole = expr<cut(M::value), M>;
};

template <class... Args>
std::vector<numbers> drawn(const Args&... args) {
  std::mt19937 bits(11);
  std::vector<numbers> all;
  const auto add = [&](const auto& arg) {
    using Arg = std::remove_cvref_t<decltype(arg)>;
    const bool whole = !is_floating(Arg::element);
    all.push_back(draw({{}, arg.low, arg.high, whole, Arg::element}, Arg::size * (Arg::mapped ? examples : 1), bits));
  };
  (add(args), ...);
  return all;
}

/// The results of a function, then the gradients of the sum of their squares with respect to floating-point arguments.
template <bool Differentiate, class F, class... Handles>
std::vector<numbers> run(graph::graph& g, const std::vector<numbers>& elements, F f, std::tuple<Handles...> handles) {
  const auto result = std::apply(f, handles);
  value loss = graph::constant(&g, dtype::f64, 0);
  std::vector<dtype> types;
  const auto add = [&](const auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    const value v{&g, leaf.handle.id};
    CHECK(g.type(v.id) == rebind(Leaf::type, Leaf::mesh_type::value, g.mesh));
    g.outputs.push_back({v.id, -1});
    types.push_back(Leaf::type.type);
    if (Leaf::type.type == dtype::f64) loss = loss + graph::sum(v * v);
  };
  ops::for_each_leaf(result, add);
  std::vector<int> wrt;
  for (int p : g.parameters)
    if (Differentiate && g.type(p).type == dtype::f64) wrt.push_back(p);
  for (int id : transform::gradients(g, loss.id, wrt)) g.outputs.push_back({id, -1}), types.push_back(dtype::f64);
  REQUIRE(g.fault.what == message::none);
  std::vector<bytes> inputs;
  for (std::size_t i = 0; i < elements.size(); ++i)
    inputs.push_back(to_bytes(elements[i], g.type(g.parameters[i]).type));
  std::vector<numbers> out;
  const std::vector<bytes> results = runtime::evaluate(g, inputs);
  for (std::size_t i = 0; i < results.size(); ++i) out.push_back(to_numbers(results[i], types[i]));
  return out;
}

template <class Handle>
Handle parameter(graph::graph& g) {
  return {{&g, g.add_parameter(rebind(Handle::type, Handle::mesh_type::value, g.mesh))}};
}

/// What the function gives example by example, results and gradients of own arguments side by side, those of shared
/// ones added up.
template <bool Differentiate, class F, class... Args>
std::vector<numbers> one_by_one(F f, const std::vector<numbers>& elements, const Args&...) {
  std::vector<numbers> all;
  const bool mapped[] = {Args::mapped...};
  const bool floating[] = {is_floating(Args::element)...};
  const std::int64_t sizes[] = {Args::size...};
  for (std::int64_t i = 0; i < examples; ++i) {
    std::vector<numbers> inputs;
    for (std::size_t a = 0; a < sizeof...(Args); ++a) {
      const auto from = elements[a].begin() + (mapped[a] ? i * sizes[a] : 0);
      inputs.emplace_back(from, from + sizes[a]);
    }
    graph::graph g;
    g.mesh = across<1>::value;
    const std::vector<numbers> one =
        run<Differentiate>(g, inputs, f, std::tuple{parameter<typename Args::template one<across<1>>>(g)...});
    if (i == 0) all.resize(one.size());
    std::size_t gradients = 0;
    for (bool is : floating) gradients += is && Differentiate ? 1 : 0;
    const std::size_t results = one.size() - gradients;
    std::size_t argument = 0;
    for (std::size_t o = 0; o < one.size(); ++o) {
      while (o >= results && !floating[argument]) ++argument;
      const bool added = o >= results && !mapped[argument++];
      if (!added || i == 0) all[o].insert(all[o].end(), one[o].begin(), one[o].end());
      else
        for (std::size_t k = 0; k < one[o].size(); ++k) all[o][k] += one[o][k];
    }
  }
  return all;
}

void check_near(const std::vector<numbers>& found, const std::vector<numbers>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t o = 0; o < found.size(); ++o) {
    REQUIRE(found[o].size() == expected[o].size());
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < found[o].size(); ++i) {
      largest = std::max(largest, std::abs(expected[o][i]));
      apart = std::isfinite(found[o][i]) ? std::max(apart, std::abs(found[o][i] - expected[o][i])) : 1e300;
    }
    INFO("output " << o);
    CHECK(apart <= 1e-12 * std::max(1.0, largest));
  }
}

template <std::int64_t Devices, bool Differentiate, class F, class... Args>
void check_on(F f, const std::vector<numbers>& elements, const std::vector<numbers>& expected, const Args&...) {
  INFO("on " << Devices << " devices");
  graph::graph g;
  g.mesh = across<Devices>::value;
  const auto many = vmap<in_axes<Args::axis...>>(f);
  check_near(run<Differentiate>(g, elements, many,
                                std::tuple{parameter<typename Args::template whole<across<Devices>>>(g)...}),
             expected);
}

template <bool Differentiate = true, class F, class... Args>
void check_mapped(const char* name, F f, const Args&... args) {
  INFO(name);
  const std::vector<numbers> elements = drawn(args...);
  const std::vector<numbers> expected = one_by_one<Differentiate>(f, elements, args...);
  check_on<1, Differentiate>(f, elements, expected, args...);
  check_on<2, Differentiate>(f, elements, expected, args...);
}

}  // namespace

TEST_CASE("elementwise operations and reductions, whatever is mapped") {
  check_mapped(
      "own and shared", [](auto x, auto b) { return ts::tanh(x * b) + b; }, own<f64, 3>{}, shared<f64, 3>{});
  check_mapped(
      "a number each", [](auto x, auto b) { return ts::exp(x) * b; }, own<f64>{}, shared<f64, 2, 3>{});
  check_mapped(
      "a number each beside an array each", [](auto x, auto y) { return where(x > 0, y, y * x); }, own<f64>{},
      own<f64, 2, 3>{});
  check_mapped(
      "ranks that differ", [](auto x, auto y) { return x + y; }, own<f64, 3>{}, own<f64, 2, 3>{});
  check_mapped(
      "sums and extrema",
      [](auto x) {
        return std::tuple{sum<0>(x), max<1>(x), sum(x), mean<0>(x)};
      },
      own<f64, 3, 5>{});
  check_mapped(
      "products of all", [](auto x) { return prod<1>(x, keepdims); }, own<f64, 3, 2>{});
  check_mapped(
      "softmax", [](auto x) { return softmax(x) * log_softmax(x) + logsumexp<1>(x, keepdims); }, own<f64, 3, 5>{});
  check_mapped(
      "what does not depend on the examples",
      [](auto x, auto b) {
        return std::tuple{x, b * 2};
      },
      own<f64>{}, shared<f64, 3>{});
}

TEST_CASE("products get a batch dimension, or another free one") {
  check_mapped(
      "both", [](auto x, auto w) { return matmul(x, w); }, own<f64, 2, 3>{}, own<f64, 3, 5>{});
  check_mapped(
      "left", [](auto x, auto w) { return matmul(x, w); }, own<f64, 2, 3>{}, shared<f64, 3, 5>{});
  check_mapped(
      "right", [](auto x, auto w) { return matmul(w, x); }, own<f64, 2, 3>{}, shared<f64, 5, 2>{});
  check_mapped(
      "vectors", [](auto x, auto y) { return matmul(x, y); }, own<f64, 3>{}, own<f64, 3>{});
  check_mapped(
      "batched left", [](auto x, auto w) { return matmul(x, w); }, own<f64, 2, 2, 3>{}, shared<f64, 2, 3, 5>{});
  check_mapped(
      "batched right", [](auto x, auto w) { return einsum<"bij,bjk->bik">(w, x); }, own<f64, 2, 3, 5>{},
      shared<f64, 2, 2, 3>{});
  check_mapped(
      "attention",
      [](auto q, auto k, auto v) { return einsum<"hts,shd->thd">(softmax(einsum<"thd,shd->hts">(q, k)), v); },
      own<f64, 3, 2, 2>{}, own<f64, 3, 2, 2>{}, own<f64, 3, 2, 2>{});
  check_mapped(
      "layers", [](auto x, auto w1, auto w2) { return matmul(relu(matmul(x, w1)), w2); }, own<f64, 2, 3>{},
      shared<f64, 3, 4>{}, shared<f64, 4, 2>{});
}

TEST_CASE("moves keep the examples in front") {
  check_mapped(
      "reshape and transpose", [](auto x) { return transpose<1, 0>(reshape<2, 6>(x)); }, own<f64, 3, 4>{});
  check_mapped(
      "broadcast", [](auto x) { return broadcast_to<2, 3>(x); }, own<f64, 3>{});
  check_mapped(
      "slices",
      [](auto x) {
        return slice<range{0, 4, 2}, range{none, none, -1}>(x);
      },
      own<f64, 5, 3>{});
  check_mapped(
      "joins", [](auto x, auto y) { return concatenate<0>(x, y, flip<0>(x)); }, own<f64, 2, 3>{}, shared<f64, 4, 3>{});
  check_mapped(
      "pads",
      [](auto x) {
        return pad<padding{1, 2, 1}>(x, 0.5);
      },
      own<f64, 3>{});
  check_mapped(
      "updates of a part",
      [](auto x, auto u) {
        return at<range{1, 3}>(x).set(u);
      },
      shared<f64, 4>{}, own<f64, 2>{});
  check_mapped(
      "rolls, repeats and tiles",
      [](auto x) {
        return roll<1, 0>(x) + repeat<2>(slice<range{0, 2}>(x)) + tile<4>(slice<1>(x) * ones<shape<1>, f64>(x));
      },
      own<f64, 4>{});
  check_mapped(
      "triangles and positions", [](auto x) { return tril(x) * astype<f64>(iota<shape<3, 3>, 1>(x)); },
      own<f64, 3, 3>{});
  check_mapped(
      "windows", [](auto x, auto k) { return avg_pool<shape<2>>(conv(x, k)); }, own<f64, 2, 5, 3>{},
      shared<f64, 3, 3, 2>{});
  check_mapped(
      "windows of own kernels", [](auto x, auto k) { return max_pool<shape<2>>(conv(x, k)); }, own<f64, 1, 5, 2>{},
      own<f64, 3, 2, 2>{});
}

TEST_CASE("each example chooses by indices of its own or by those of all") {
  const own<i32, 3> mine{{-4, 4}};
  const shared<i32, 3> ours{-4, 4};
  const auto rows = [](auto x, auto i) { return take<0>(x, i); };
  const auto columns = [](auto x, auto i) { return take<1>(x, i); };
  check_mapped("own rows", rows, own<f64, 4, 2>{}, mine);
  check_mapped("shared rows", rows, shared<f64, 4, 2>{}, mine);
  check_mapped("rows by shared indices", rows, own<f64, 4, 2>{}, ours);
  check_mapped("own columns", columns, own<f64, 2, 4>{}, mine);
  check_mapped("shared columns", columns, shared<f64, 2, 4>{}, mine);
  check_mapped("columns by shared indices", columns, own<f64, 2, 4>{}, ours);
  check_mapped("one row", rows, shared<f64, 4, 2>{}, own<i32>{{-4, 4}});
  check_mapped(
      "along a dimension", [](auto x, auto i) { return take_along_axis<0>(x, i); }, own<f64, 4>{}, mine);
  check_mapped(
      "along a shared one", [](auto x, auto i) { return take_along_axis<0>(x, i); }, shared<f64, 4>{}, mine);
  check_mapped(
      "batched", [](auto x, auto i) { return take<1>(x, i, batch_dims<1>); }, shared<f64, 3, 4>{}, mine);
  const auto add = [](auto x, auto i, auto u) { return at(x, i).add(u); };
  const auto set = [](auto x, auto i, auto u) { return at(x, i).set(u); };
  check_mapped("add", add, own<f64, 4, 2>{}, mine, own<f64, 3, 2>{});
  check_mapped("add at shared places", add, own<f64, 4, 2>{}, ours, shared<f64, 3, 2>{});
  check_mapped("add to a shared array", add, shared<f64, 4, 2>{}, mine, shared<f64, 3, 2>{});
  check_mapped("set", set, own<f64, 4, 2>{}, mine, own<f64, 3, 2>{});
  check_mapped(
      "max", [](auto x, auto i, auto u) { return at(x, i).max(u); }, own<f64, 4>{}, mine, own<f64, 3>{});
  check_mapped(
      "one_hot", [](auto i) { return astype<f64>(one_hot<5>(i)); }, mine);
}

TEST_CASE("each example has a start of its own or that of all") {
  const own<i32> mine{{-9, 9}};
  const auto part = [](auto x, auto i) { return dynamic_slice<2, 2>(x, 1, i); };
  check_mapped("own parts", part, own<f64, 3, 5>{}, mine);
  check_mapped("parts of a shared array", part, shared<f64, 3, 5>{}, mine);
  check_mapped("parts from a shared start", part, own<f64, 3, 5>{}, shared<i32>{-9, 9});
  const auto update = [](auto x, auto i, auto u) { return dynamic_update_slice(x, u, i, 0); };
  check_mapped("own updates", update, own<f64, 5, 2>{}, mine, own<f64, 2, 2>{});
  check_mapped("updates of a shared array", update, shared<f64, 5, 2>{}, mine, shared<f64, 2, 2>{});
}

TEST_CASE("walks and orders along a dimension") {
  check_mapped(
      "running values", [](auto x) { return cumsum<0>(x) * cumprod<1>(x) + cummax<0>(x); }, own<f64, 3, 4>{});
  check_mapped(
      "logarithms of running sums", [](auto x) { return cumlogsumexp<0>(x, reverse); }, own<f64, 4>{});
  check_mapped(
      "orders",
      [](auto x) {
        return std::tuple{sort<0>(x), argsort<1>(x)};
      },
      own<f64, 3, 4>{});
  check_mapped(
      "the largest", [](auto x) { return top_k<2>(x); }, own<f64, 5>{});
}

TEST_CASE("loops and branches are mapped inside") {
  check_mapped(
      "scan over own rows",
      [](auto x, auto w) {
        return scan(
            [&](auto c, auto row) {
              const auto next = ts::tanh(matmul(c, w) + row);
              return std::pair(next, next * 2);
            },
            slice<0>(x), x);
      },
      own<f64, 3, 2>{}, shared<f64, 2, 2>{});
  check_mapped(
      "scan over shared rows",
      [](auto c, auto x) {
        return scan([](auto carry, auto row) { return std::pair(carry * row, sum(carry)); }, c, x);
      },
      own<f64, 2>{}, shared<f64, 3, 2>{});
  check_mapped(
      "a carry that does not depend on the examples",
      [](auto x, auto b) {
        return scan<3>(
            [&](auto carry) {
              const auto& [count, total] = carry;
              return std::pair(std::tuple{count + 1, total + x * count}, count);
            },
            std::tuple{b, x});
      },
      own<f64, 2>{}, shared<f64>{});
  check_mapped(
      "checkpoint",
      [](auto x, auto w) { return checkpoint([](auto a, auto b) { return ts::sin(matmul(a, b)); })(x, w); },
      own<f64, 2, 3>{}, shared<f64, 3, 2>{});
  const auto branch = [](auto p, auto x, auto b) {
    return cond(
        p > 0, [](auto a, auto c) { return a * c; }, [](auto a, auto) { return a * a; }, x, b);
  };
  check_mapped("a branch of each example", branch, own<f64>{}, own<f64, 3>{}, shared<f64, 3>{});
  check_mapped("a branch of all", branch, shared<f64>{}, own<f64, 3>{}, shared<f64, 3>{});
}

TEST_CASE("a while loop goes on while one example does") {
  const auto doubled = [](auto x, auto limit) {
    return while_loop([=](auto v) { return sum(v) < limit; }, [](auto v) { return v * 2 + 1; }, x);
  };
  const auto counted = [](auto x) {
    const auto n = astype<i32>(x) * 0;
    return while_loop([](auto c) { return c.first < 3; }, [](auto c) { return std::pair(c.first + 1, c.second * 0.5); },
                      std::pair(n, x));
  };
  check_mapped<false>("own limits", doubled, own<f64, 2>{0, 2}, own<f64>{0, 40});
  check_mapped<false>("a shared limit", doubled, own<f64, 2>{0, 2}, shared<f64>{30, 40});
  check_mapped<false>("as often for all", counted, own<f64>{});
  const auto constant = [](auto x) {
    return while_loop([](auto c) { return c.first < 3; }, [](auto c) { return std::pair(c.first + 1, c.second * 0.5); },
                      std::pair(full<shape<>, dtype::i32>(x, 0), x));
  };
  check_mapped<false>("as often for all, by a count that they share", constant, own<f64>{});
}

TEST_CASE("random numbers are those of each example's key") {
  check_mapped<false>(
      "uniform", [](auto key) { return random::uniform<shape<3>, dtype::f64>(key); }, own<u32, 2>{0, 1000});
  check_mapped<false>(
      "normal beside an array", [](auto key, auto x) { return x * random::normal<shape<2>, dtype::f64>(key); },
      shared<u32, 2>{0, 1000}, own<f64, 2>{});
}

TEST_CASE("a map within shard_map goes over rows of a block, and sums over devices within it") {
  using M = across<2>;
  using rows = expr<tensor<dtype::f64, shape<4, 2>, P<"data">, M>::type, M>;
  graph::graph g;
  g.mesh = M::value;
  const rows x = parameter<rows>(g);
  const auto summed =
      shard_map<out_specs<P<>>>([](auto block) { return vmap([](auto row) { return psum<"data">(row) * 2; })(block); });
  g.outputs.push_back({summed(x).handle.id, -1});
  REQUIRE(g.fault.what == message::none);
  const std::vector<bytes> inputs{to_bytes(numbers{1, 2, 3, 4, 10, 20, 30, 40}, dtype::f64)};
  CHECK(to_numbers(runtime::evaluate(g, inputs)[0], dtype::f64) == numbers{22, 44, 66, 88});
}

TEST_CASE("a gradient of one's own is mapped as its function is") {
  const auto steep = custom_vjp([](auto x, auto w) { return ts::sin(x * w); },
                                [](auto x, auto w) {
                                  return std::pair(ts::sin(x * w), std::tuple{x, w});
                                },
                                [](auto kept, auto ct) {
                                  return std::tuple{ct * std::get<1>(kept) * 3, sum(ct * std::get<0>(kept))};
                                });
  const auto scaled = [=](auto x, auto w) { return steep(x * 2, w); };
  check_mapped("own and shared", scaled, own<f64, 3>{}, shared<f64>{});
  check_mapped("both own", scaled, own<f64, 3>{}, own<f64>{});
  check_mapped("shared and own", scaled, shared<f64, 3>{}, own<f64>{});
  check_mapped(
      "a gradient of it", [=](auto x, auto w) { return grad([=](auto v, auto u) { return sum(steep(v, u)); })(x, w); },
      own<f64, 3>{}, shared<f64>{});
}

TEST_CASE("mapped functions nest, have gradients, and may take them") {
  const auto loss = [](auto w, auto x) { return sum(square(ts::tanh(matmul(x, w)))); };
  check_mapped(
      "gradients of each example", [=](auto w, auto x) { return grad(loss)(w, x); }, shared<f64, 3, 2>{},
      own<f64, 2, 3>{});
  check_mapped(
      "gradients of own weights", [=](auto w, auto x) { return grad(loss)(w, x); }, own<f64, 3, 2>{}, own<f64, 2, 3>{});
  check_mapped(
      "a map within a map",
      [](auto x, auto y) {
        return vmap<in_axes<0, none>>([](auto row, auto all) { return matmul(all, row) * sum(row); })(x, y);
      },
      own<f64, 2, 3>{}, own<f64, 4, 3>{});
  check_mapped(
      "a map over columns within a map",
      [](auto x, auto b) {
        return vmap<in_axes<1>, out_axes<-1>>([&](auto column) { return sort<0>(column + b); })(x);
      },
      own<f64, 3, 2>{}, shared<f64>{});
  check_mapped(
      "a gradient of a map within a map",
      [=](auto w, auto x) {
        return grad([=](auto v, auto rows) { return sum(vmap<in_axes<none, 0>>(loss)(v, rows)); })(w, x);
      },
      shared<f64, 3, 2>{}, own<f64, 2, 2, 3>{});
}
