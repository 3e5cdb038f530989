// SPDX-License-Identifier: Apache-2.0
// Random numbers within a step are those outside it, bit for bit: published vectors, interpreted and compiled steps,
// any mesh and any cut.
#include "runtime/support.hpp"

#include "reference/reference.hpp"

#include <tessera/random/permutation.hpp>
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <bit>
#include <map>

using namespace runtime_test;
namespace ts = tessera;
namespace rnd = tessera::random;
using reference::json;
using rnd::detail::source;
using ts::none, ts::P, ts::shape;

namespace {

bytes key_bytes(rnd::key k) {
  const std::uint32_t words[] = {k.hi, k.lo};
  const auto* from = reinterpret_cast<const std::byte*>(words);
  return bytes(from, from + sizeof words);
}

const aval key_type = array_type(dtype::u32, {2});

/// The array that `distribution` draws from a key within a step, as its bytes.
template <class Distribution>
bytes drawn(rnd::key k, const aval& type, const Distribution& distribution, const mesh_value& mesh = {}) {
  graph::graph g;
  g.mesh = mesh;
  const value key{&g, g.add_parameter(key_type)};
  const value y = distribution(source(key, type));
  REQUIRE(y.type() == type);
  g.outputs = {{y.id, -1}};
  const std::vector<bytes> inputs{key_bytes(k)};
  return runtime::evaluate(g, inputs)[0];
}

/// The same outside a step.
template <class T, class Distribution>
bytes filled(rnd::key k, std::int64_t count, const Distribution& distribution) {
  bytes out(static_cast<std::size_t>(count) * sizeof(T));
  rnd::fill(std::span(reinterpret_cast<T*>(out.data()), static_cast<std::size_t>(count)), k, distribution);
  return out;
}

const auto draw_bits = [](const source& from) { return from.word(op::threefry_bits); };
const auto bits_outside = [](rnd::key k, std::uint64_t i) { return rnd::bits32_at(k, i); };
const auto coins = [](float p) { return [p](const source& from) { return from.below(p); }; };

std::uint64_t from_hex(const json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); }

rnd::key key_of(const json& v) {
  return {static_cast<std::uint32_t>(from_hex(v["key"][0])), static_cast<std::uint32_t>(from_hex(v["key"][1]))};
}

aval type_of(const json& v, dtype d) { return array_type(d, v["shape"].get<std::vector<std::int64_t>>()); }

/// The first elements of a published float32 array are those drawn within a step, by the vector's tolerance.
void check_floats(const json& v, const bytes& got) {
  const std::vector<double> numbers = to_numbers(got, dtype::f32);
  for (std::size_t i = 0; i < v["first"].size(); ++i)
    CHECK(reference::compare(v["first"][i], numbers[i], v["tolerance"]));
}

template <class F>
void check_keys(const json& v, F children) {
  graph::graph g;
  const value key{&g, g.add_parameter(key_type)};
  for (const value& child : children(key)) g.outputs.push_back({child.id, -1});
  const std::vector<bytes> inputs{key_bytes(key_of(v))};
  const std::vector<bytes> keys = runtime::evaluate(g, inputs);
  REQUIRE(v["values_hex"].size() == 2 * keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::vector<double> words = to_numbers(keys[i], dtype::u32);
    CHECK(words[0] == static_cast<double>(from_hex(v["values_hex"][2 * i])));
    CHECK(words[1] == static_cast<double>(from_hex(v["values_hex"][2 * i + 1])));
  }
}

value child_of(value key, double counter) {
  return rnd::detail::child(key, graph::constant(key.owner, dtype::u32, counter));
}

void check_vector(const json& v) {
  const std::string name = v["op"];
  const json args = v.value("args", json::object());
  if (name == "bits32") {
    const std::vector<double> got = to_numbers(drawn(key_of(v), type_of(v, dtype::u32), draw_bits), dtype::u32);
    for (std::size_t i = 0; i < v["first_hex"].size(); ++i)
      CHECK(got[i] == static_cast<double>(from_hex(v["first_hex"][i])));
  } else if (name == "uniform") {
    const rnd::detail::uniform_of<dtype::f32> uniform(args.value("low", 0.0), args.value("high", 1.0));
    check_floats(v, drawn(key_of(v), type_of(v, dtype::f32), uniform));
  } else if (name == "normal") {
    check_floats(v, drawn(key_of(v), type_of(v, dtype::f32), rnd::detail::normal_of<dtype::f32>{}));
  } else if (name == "truncated_normal") {
    const rnd::detail::truncated_normal_of<dtype::f32> within(args["low"], args["high"]);
    check_floats(v, drawn(key_of(v), type_of(v, dtype::f32), within));
  } else if (name == "randint") {
    const rnd::detail::integers_of<dtype::i32> integers(args["low"], args["high"]);
    const std::vector<double> got = to_numbers(drawn(key_of(v), type_of(v, dtype::i32), integers), dtype::i32);
    for (std::size_t i = 0; i < v["first"].size(); ++i) CHECK(got[i] == v["first"][i].get<double>());
  } else if (name == "split") {
    check_keys(v, [&](value key) {
      std::vector<value> children;
      for (int i = 0; i < args["n"].get<int>(); ++i) children.push_back(child_of(key, i));
      return children;
    });
  } else if (name == "fold_in") {
    check_keys(v, [&](value key) { return std::vector{child_of(key, args["data"])}; });
  }
}

}  // namespace

TEST_CASE("published random vectors come out within a step") {
  std::map<std::string, int> checked;
  const json all = reference::load_json("random_vectors.json");
  for (const json& v : all.at("vectors")) {
    INFO(v.dump().substr(0, 200));
    check_vector(v);
    ++checked[v["op"]];
  }
  for (const char* name : {"bits32", "uniform", "normal", "truncated_normal", "randint", "split", "fold_in"})
    CHECK(checked[name] > 0);
}

TEST_CASE("random numbers are those of outside on every mesh, however they are cut") {
  const rnd::key k{0x12345678U, 42};
  for (const mesh_value& mesh : all_meshes())
    for (const aval& plain :
         {array_type(dtype::f32, {8, 16}), array_type(dtype::f32, {16}), array_type(dtype::f32, {1, 8, 1}),
          array_type(dtype::f32, {}), array_type(dtype::f32, {0, 8})})
      for (aval type : all_specs(plain, mesh)) {
        INFO(text_of(type, mesh));
        const std::int64_t n = type.size();
        CHECK(drawn(k, type, rnd::detail::normal_of<dtype::f32>{}, mesh) ==
              filled<float>(k, n, rnd::normal_distribution<float>()));
        CHECK(drawn(k, type, rnd::detail::truncated_normal_of<dtype::f32>(-1, 3), mesh) ==
              filled<float>(k, n, rnd::truncated_normal_distribution<float>(-1, 3)));
        type.type = dtype::f64;
        CHECK(drawn(k, type, rnd::detail::uniform_of<dtype::f64>(-2, 3), mesh) ==
              filled<double>(k, n, rnd::uniform_distribution<double>(-2, 3)));
        type.type = dtype::u32;
        CHECK(drawn(k, type, draw_bits, mesh) == filled<std::uint32_t>(k, n, bits_outside));
        type.type = dtype::i32;
        CHECK(drawn(k, type, rnd::detail::integers_of<dtype::i32>(-5, 1000), mesh) ==
              filled<std::int32_t>(k, n, rnd::integers<std::int32_t>(-5, 1000)));
        type.type = dtype::bool_;
        CHECK(drawn(k, type, coins(0.3F), mesh) == filled<bool>(k, n, rnd::bernoulli_distribution(0.3)));
      }
}

TEST_CASE("choices of every probability are those of outside, also where a fraction is the probability itself") {
  const rnd::key k{5, 6};
  std::vector<float> all{0.0F, 1e-42F, 0x1p-24F, 0x1p-23F, 0x1.8p-23F, 0.3F, 0.5F, 1 - 0x1p-23F, 1 - 0x1p-24F, 1.0F};
  for (std::uint64_t i = 0; i < 20; ++i)
    for (float u = rnd::uniform_at<float>(k, i); float p : {std::nextafter(u, 0.0F), u, std::nextafter(u, 1.0F)})
      all.push_back(p);
  for (float p : all) {
    INFO(p);
    CHECK(drawn(k, array_type(dtype::bool_, {300}), coins(p)) ==
          filled<bool>(k, 300, rnd::bernoulli_distribution(static_cast<double>(p))));
  }
}

TEST_CASE("uniform numbers of every range are those of outside") {
  const rnd::key k{8, 1};
  const auto check = [&]<class T>(T) {
    constexpr dtype d = ts::dtype_of<T>;
    constexpr T least = std::numeric_limits<T>::denorm_min(), most = std::numeric_limits<T>::max();
    constexpr T normal = std::numeric_limits<T>::min();
    const std::vector<std::pair<T, T>> ranges{{0, 1},
                                              {-1, 1},
                                              {T(0.1), T(0.7)},
                                              {2, 2},
                                              {3, std::nextafter(T(3), T(4))},
                                              {-5, 0},
                                              {0, normal},
                                              {0, 700 * least},
                                              {-normal, 3 * normal},
                                              {-most / 2, most / 2},
                                              {0, most},
                                              {-most, 0}};
    for (const auto& [lo, hi] : ranges) {
      INFO(lo << " to " << hi);
      CHECK(drawn(k, array_type(d, {300}),
                  rnd::detail::uniform_of<d>(static_cast<double>(lo), static_cast<double>(hi))) ==
            filled<T>(k, 300, rnd::uniform_distribution<T>(lo, hi)));
    }
  };
  check(float{}), check(double{});
}

TEST_CASE("permutations within a step are those of outside, in one round of sorting or two") {
  const rnd::key k{3, 4};
  for (std::int64_t n : {0, 1, 2, 100, 1625, 1626, 5000}) {
    graph::graph g;
    const value key{&g, g.add_parameter(key_type)};
    g.outputs = {{rnd::detail::write_permutation({key}, array_type(dtype::i32, {n})).id, -1}};
    const std::vector<bytes> inputs{key_bytes(k)};
    const std::vector<double> got = to_numbers(runtime::evaluate(g, inputs)[0], dtype::i32);
    const std::vector<std::uint32_t> expected = rnd::permutation(k, static_cast<std::size_t>(n));
    CHECK(got == std::vector<double>(expected.begin(), expected.end()));
  }
}

TEST_CASE("integers of every range that int32 and uint32 have are those of outside") {
  const rnd::key k{7, 9};
  const auto low = std::numeric_limits<std::int32_t>::min();
  const auto high = std::numeric_limits<std::int32_t>::max();
  CHECK(drawn(k, array_type(dtype::i32, {100}), rnd::detail::integers_of<dtype::i32>(low, high)) ==
        filled<std::int32_t>(k, 100, rnd::integers<std::int32_t>(low, high)));
  const auto most = std::numeric_limits<std::uint32_t>::max();
  CHECK(drawn(k, array_type(dtype::u32, {100}), rnd::detail::integers_of<dtype::u32>(1, most)) ==
        filled<std::uint32_t>(k, 100, rnd::integers<std::uint32_t>(1, most)));
  CHECK_THROWS_AS(rnd::detail::integers_of<dtype::i32>(3, 3), value_error);
  CHECK_THROWS_AS(rnd::detail::integers_of<dtype::u32>(-1, 3), value_error);
  CHECK_THROWS_AS(rnd::detail::uniform_of<dtype::f32>(2, 1), value_error);
}

namespace {

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 2>>;

inline constexpr auto draw_everything = [](auto seed, auto keys) {
  const auto key = rnd::make_key(seed);
  const auto [a, b] = rnd::split(key);
  const auto c = rnd::fold_in(b, 7);
  return std::tuple{rnd::bits<shape<33, 35>>(a),
                    rnd::uniform<shape<8, 30>>(a, -1, 2, ts::out_sharding<P<"data">>),
                    rnd::normal<shape<64, 66>>(b, ts::out_sharding<P<"model", "data">>),
                    rnd::truncated_normal<shape<50>, ts::f64>(c),
                    ts::astype<ts::i32>(rnd::bernoulli<shape<40>>(c, 0.3)),
                    rnd::randint<shape<70>>(c, -5, 1000),
                    rnd::normal<shape<31>, ts::f64>(a),
                    rnd::bits<shape<5>>(keys)};
};

template <class Tensor, class Distribution>
void check_drawn(const Tensor& got, rnd::key k, const Distribution& distribution) {
  const auto host = got.to_vector();
  for (std::size_t i = 0; i < host.size(); ++i) REQUIRE(host[i] == distribution(k, i));
}

}  // namespace

TEST_CASE("a compiled step draws the numbers of outside, and each of several keys its own") {
  const auto keys = ts::device_put<shape<2, 2>, P<"data">, cluster>(std::vector<std::uint32_t>{1, 2, 3, 4});
  const auto drawn_now = ts::jit<draw_everything>(std::uint32_t{42}, keys);
  const auto [a, b] = rnd::split(rnd::make_key(42));
  const rnd::key c = rnd::fold_in(b, 7);
  check_drawn(std::get<0>(drawn_now), a, bits_outside);
  check_drawn(std::get<1>(drawn_now), a, rnd::uniform_distribution<float>(-1, 2));
  check_drawn(std::get<2>(drawn_now), b, rnd::normal_distribution<float>());
  check_drawn(std::get<3>(drawn_now), c, rnd::truncated_normal_distribution<double>());
  check_drawn(std::get<4>(drawn_now), c, rnd::bernoulli_distribution(0.3));
  check_drawn(std::get<5>(drawn_now), c, rnd::integers<std::int32_t>(-5, 1000));
  check_drawn(std::get<6>(drawn_now), a, rnd::normal_distribution<double>());
  const auto several = std::get<7>(drawn_now).to_vector();
  for (std::size_t i = 0; i < 10; ++i)
    CHECK(several[i] == rnd::bits32_at(i < 5 ? rnd::key{1, 2} : rnd::key{3, 4}, i % 5));
}
