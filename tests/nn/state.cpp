// SPDX-License-Identifier: Apache-2.0
// State of modules: what a forward pass changes, in whatever body it runs.
#include <tessera/nn/key_stream.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/mode.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/stack.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime/evaluate.hpp>
#include <tessera/runtime/jit.hpp>
#include <tessera/transform/accumulate.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

#include <cstring>
#include <vector>

namespace ts = tessera;
using ts::none, ts::P;

namespace {

struct step_counter {
  static constexpr std::string_view name = "step_counter";
};

/// y = x w + u, u uniform from its stream; seen = 0.5 seen + sum(x w).
struct noisy {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<>> w;
  ts::nn::variable<ts::nn::batch_stat, ts::f32, ts::shape<>> seen;
  ts::nn::key_stream<"noise"> rngs;
  ts::nn::variable<step_counter, ts::i32, ts::shape<>> calls;
  TESSERA_MODULE(noisy, w, seen, rngs, calls)

  constexpr auto operator()(auto x) {
    calls += 1;
    const auto h = x * w;
    seen = 0.5 * seen + ts::sum(h);
    if (ts::nn::evaluates(*this)) return h;
    return h + ts::random::uniform<ts::shape<>>(rngs());
  }
};

using x_type = ts::tensor<ts::f32, ts::shape<4>>;

/// What the module holds and gives, on the host.
struct expected {
  float w = 3, seen = 7;
  ts::random::key key{5, 6};
  std::uint32_t count = 2;
  std::int32_t calls = 10;

  std::vector<float> operator()(const std::vector<float>& x) {
    ++calls;
    std::vector<float> y;
    float total = 0;
    for (float e : x) y.push_back(e * w), total += e * w;
    seen = 0.5F * seen + total;
    float noise = 0;
    ts::random::fill_uniform(std::span(&noise, 1), ts::random::fold_in(key, count++), 0, 0.0F, 1.0F);
    for (float& e : y) e += noise;
    return y;
  }
};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

const std::vector<float> xs{1, 2, 3, 4};

/// Runs a step on the module of `expected` and compares the state it leaves; returns the result.
template <const auto& Step, class View = ts::nn::bound<noisy, ts::mesh<>>>
std::vector<float> left_as(const expected& then) {
  const ts::graph::graph trace = ts::transform::traced<Step, View, x_type>::run();
  const expected now;
  const std::vector<std::vector<std::byte>> in{
      bytes_of(std::vector{now.w}),     bytes_of(std::vector{now.seen}),  bytes_of(std::vector{now.key.hi, now.key.lo}),
      bytes_of(std::vector{now.count}), bytes_of(std::vector{now.calls}), bytes_of(xs)};
  const auto out = ts::runtime::evaluate(trace, in);
  auto after = in;
  std::vector<float> results;
  for (std::size_t o = 0; o < out.size(); ++o) {
    if (trace.outputs[o].alias >= 0) after[static_cast<std::size_t>(trace.outputs[o].alias)] = out[o];
    else
      for (const float f : values_of<float>(out[o])) results.push_back(f);
  }
  CHECK(values_of<float>(after[0])[0] == then.w);
  CHECK(values_of<float>(after[1])[0] == Approx(then.seen).epsilon(1e-6));
  CHECK(values_of<std::uint32_t>(after[2]) == std::vector{then.key.hi, then.key.lo});
  CHECK(values_of<std::uint32_t>(after[3])[0] == then.count);
  CHECK(values_of<std::int32_t>(after[4])[0] == then.calls);
  return results;
}

std::vector<float> after_calls(expected& state, int calls) {
  std::vector<float> x = xs;
  for (int i = 0; i < calls; ++i) x = state(x);
  return x;
}

inline constexpr auto plain = [](auto& m, auto x) { return m(m(x)); };
inline constexpr auto scanned = [](auto& m, auto x) {
  return ts::scan<3>([&](auto h) { return std::pair(m(h), none); }, x).first;
};
inline constexpr auto mixed_loop = [](auto& m, auto x) {
  const auto before = m.calls + 0;
  const auto old = m;
  return ts::scan<3>(
             [&](auto h) {
               auto local = m;
               const auto y = m(h);
               return std::pair(y, std::tuple(m.calls + 0, local.calls + 0, before, old.calls + 0));
             },
             x)
      .second;
};
inline constexpr auto carried = [](auto& m, auto x) {
  auto [out, ys] = ts::scan<3>(
      [](auto carry) {
        auto& module = carry.first;
        carry.second = ts::checkpoint([&](auto in) { return module(in); })(carry.second);
        return std::pair(carry, none);
      },
      std::pair(m, x));
  m = out.first;
  return out.second;
};
inline constexpr auto checkpointed = [](auto& m, auto x) { return ts::checkpoint([&](auto h) { return m(h); })(m(x)); };
inline constexpr auto checkpointed_module = [](auto& m, auto x) { return ts::checkpoint(m)(ts::checkpoint(m)(x)); };
inline constexpr auto checkpointed_argument = [](auto& m, auto x) {
  return ts::checkpoint([](auto& module, auto h) { return module(module(h)); })(m, x);
};
inline constexpr auto branched = [](auto& m, auto x) {
  return ts::cond(
      ts::sum(x) > 0, [&](auto h) { return m(h); }, [](auto h) { return h; }, x);
};
inline constexpr auto not_branched = [](auto& m, auto x) {
  return ts::cond(
      ts::sum(x) < 0, [&](auto h) { return m(h); },
      [&](auto h) {
        m.calls = 0 * m.calls;
        return h;
      },
      x);
};
inline constexpr auto in_while = [](auto& m, auto x) {
  return ts::while_loop([&](auto) { return m.calls < 13; }, [&](auto h) { return m(h); }, x);
};
inline constexpr auto nested = [](auto& m, auto x) {
  return ts::checkpoint([&](auto h) {
    return ts::scan<2>(
               [&](auto in) {
                 return std::pair(ts::cond(
                                      ts::sum(in) > 0, [&](auto a) { return ts::checkpoint(m)(a); },
                                      [&](auto a) { return m(a); }, in),
                                  none);
               },
               h)
        .first;
  })(x);
};

template <bool Checkpointed>
inline constexpr auto loss = [](auto& m, auto x) {
  const auto twice = [&](auto h) {
    return ts::sum(ts::scan<2>([&](auto in) { return std::pair(m(in), none); }, h).first);
  };
  if constexpr (Checkpointed) return ts::checkpoint(twice)(x);
  else return twice(x);
};
template <bool Checkpointed>
inline constexpr auto gradient = [](auto& m, auto x) {
  auto [l, grads] = ts::value_and_grad(loss<Checkpointed>)(m, x);
  return std::tuple(l, ts::reshard<P<>>(grads.w));
};

}  // namespace

TEST_CASE("A forward pass changes statistics, counters and random streams in place, in every kind of body") {
  expected one, two, three, four;
  const auto y1 = after_calls(one, 1), y2 = after_calls(two, 2), y3 = after_calls(three, 3);
  CHECK(left_as<plain>(two) == y2);
  CHECK(left_as<scanned>(three) == y3);
  CHECK(left_as<carried>(three) == y3);
  CHECK(left_as<checkpointed>(two) == y2);
  CHECK(left_as<checkpointed_module>(two) == y2);
  CHECK(left_as<checkpointed_argument>(two) == y2);
  CHECK(left_as<branched>(one) == y1);
  CHECK(left_as<in_while>(three) == y3);
  CHECK(left_as<nested>(two) == y2);
  expected reset;
  reset.calls = 0;
  CHECK(left_as<not_branched>(reset) == xs);
}

TEST_CASE(
    "A gradient runs a checkpointed forward pass again and changes state once; values and gradients stay the same") {
  expected two;
  const auto y = after_calls(two, 2);
  const std::vector<float> saved = left_as<gradient<false>>(two);
  CHECK(left_as<gradient<true>>(two) == saved);
  CHECK(saved[0] == Approx(y[0] + y[1] + y[2] + y[3]).epsilon(1e-6));
}

TEST_CASE(
    "In a loop a variable is what the trip before left, a value or a copy from before the loop stays what it was") {
  using one = ts::nn::bound<noisy, ts::mesh<>>;
  const ts::graph::graph trace = ts::transform::traced<mixed_loop, one, x_type>::run();
  const expected now;
  const std::vector<std::vector<std::byte>> in{bytes_of(std::vector{now.w}),     bytes_of(std::vector{now.seen}),
                                               bytes_of(std::vector{5U, 6U}),    bytes_of(std::vector{now.count}),
                                               bytes_of(std::vector{now.calls}), bytes_of(xs)};
  const auto out = ts::runtime::evaluate(trace, in);
  CHECK(values_of<std::int32_t>(out[0]) == std::vector{11, 12, 13});
  CHECK(values_of<std::int32_t>(out[1]) == std::vector{10, 11, 12});
  CHECK(values_of<std::int32_t>(out[2]) == std::vector{10, 10, 10});
  CHECK(values_of<std::int32_t>(out[3]) == std::vector{10, 10, 10});
}

// All of it while the program compiles, too: a result and three changed variables.
static_assert(ts::transform::traced<nested, ts::nn::bound<noisy, ts::mesh<>>, x_type>::run().outputs.size() == 4);
static_assert(ts::transform::traced<carried, ts::nn::bound<noisy, ts::mesh<>>, x_type>::run().fault.what ==
              ts::message::none);

namespace {

inline constexpr auto evaluated = [](auto& m, auto x) {
  ts::nn::eval(m);
  const auto y = ts::scan<2>([&](auto h) { return std::pair(ts::checkpoint(m)(h), none); }, x).first;
  ts::nn::train(m);
  return y;
};

}  // namespace

TEST_CASE("A module that evaluates draws nothing, in bodies too, whether a step says so or who calls it") {
  using model = ts::nn::bound<noisy, ts::mesh<>>;
  expected then;
  then.seen = 0.5F * (0.5F * then.seen + 30) + 90;
  then.calls = 12;
  const std::vector<float> y{9, 18, 27, 36};
  CHECK(left_as<evaluated>(then) == y);
  CHECK((left_as<plain, ts::nn::mode_view<model, true>>(then)) == y);
  CHECK((left_as<checkpointed, ts::nn::mode_view<model, true>>(then)) == y);
  expected two;
  const auto trained = after_calls(two, 2);
  CHECK((left_as<plain, ts::nn::mode_view<model, false>>(two)) == trained);
}

namespace {

struct deep {
  ts::nn::linear<4, 4> first;
  ts::nn::stack<3, noisy> layers;
  ts::nn::key_stream<"dropout"> last;
  TESSERA_MODULE(deep, first, layers, last)

  constexpr auto operator()(auto x) {
    return layers.apply(ts::checkpoint([](auto& m, auto h) { return m(h); }), x);
  }
};

inline constexpr auto step = [](auto& m, auto x) { return m(x); };

}  // namespace

TEST_CASE("A stream in a module starts from one key of the stream of its name; layers of a stack have their own") {
  ts::nn::rngs streams = ts::nn::rngs{.params = 0, .dropout = 1}.with("noise", 2);
  auto model = ts::init<deep>(streams);
  const auto key = ts::nn::to_vector(model.last.key);
  const ts::random::key second = ts::random::fold_in(ts::random::make_key(1), 1);  // the stack took the first one
  CHECK(key == std::vector{second.hi, second.lo});
  const ts::random::key stack = ts::random::fold_in(ts::random::make_key(2), 0);
  std::vector<std::uint32_t> words;
  for (const ts::random::key layer : ts::random::split(stack, std::size_t{3})) {
    const ts::random::key base = ts::random::fold_in(layer, 0);
    words.insert(words.end(), {base.hi, base.lo});
  }
  CHECK(ts::nn::to_vector(std::get<2>(model.layers.stacked)) == words);
  CHECK(ts::nn::to_vector(model.last.count) == std::vector{0U});

  SECTION("one seed is one stream for all, which counts in the order of construction") {
    auto alone = ts::init<deep>(ts::nn::rngs{7});
    const ts::random::key fourth = ts::random::fold_in(ts::random::make_key(7), 3);
    CHECK(ts::nn::to_vector(alone.last.key) == std::vector{fourth.hi, fourth.lo});
  }
  SECTION("a step leaves every layer's state in the stack, and a view in evaluation draws nothing") {
    const auto x = ts::device_put<ts::shape<4>, P<>, ts::mesh<>>(std::vector<float>{1, 2, 3, 4});
    ts::jit<step>(model, x);
    CHECK(ts::nn::to_vector(std::get<3>(model.layers.stacked)) == std::vector{1U, 1U, 1U});
    CHECK(ts::nn::to_vector(std::get<4>(model.layers.stacked)) == std::vector{1, 1, 1});
    ts::jit<step>(ts::nn::eval_mode(model), x);
    CHECK(ts::nn::to_vector(std::get<3>(model.layers.stacked)) == std::vector{1U, 1U, 1U});
    CHECK(ts::nn::to_vector(std::get<4>(model.layers.stacked)) == std::vector{2, 2, 2});
    ts::nn::eval(model);
    CHECK_THROWS_WITH(ts::jit<step>(model, x), Catch::Contains("pass nn::eval_mode(model)"));
  }
}

namespace {

inline constexpr auto accumulated = [](auto& m, auto x) {
  const auto one = [](auto& module, auto h) { return ts::sum(module(h)); };
  return ts::accumulate<ts::micro_batches::sum>(one)(m, ts::reshape<2, 2>(x)).value;
};

}  // namespace

TEST_CASE("Micro-batches leave the state of all of them") {
  expected two;
  const auto a = two({1, 2}), b = two({3, 4});
  CHECK(left_as<accumulated>(two)[0] == Approx(a[0] + a[1] + b[0] + b[1]).epsilon(1e-6));
}
