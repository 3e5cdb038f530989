// SPDX-License-Identifier: Apache-2.0
// What a step says of arguments that it cannot run with.
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <string>
#include <tuple>
#include <vector>

namespace ts = tessera;

namespace {

struct pair_of_layers {
  std::array<ts::nn::linear<2, 2>, 2> layers;
  TESSERA_MODULE(pair_of_layers, layers)
};

constexpr auto halve = [](auto& a, auto& b) { a.layers[0].bias = a.layers[0].bias * 0.5 + b.layers[1].bias; };
inline constexpr auto halving = halve;
inline constexpr auto reading = [](auto& a, auto& b) { return a.layers[0].bias + b.layers[1].bias; };

template <class F>
std::string message_of(F call) {
  try {
    call();
  } catch (const ts::value_error& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("A variable that holds no array is named by its argument and path") {
  ts::nn::bound<pair_of_layers, ts::mesh<>> empty;
  auto model = ts::init<pair_of_layers>(ts::nn::rngs{0});
  empty.layers[0] = model.layers[0];
  CHECK(message_of([&] { ts::jit<reading>(model, empty); }) ==
        "jit: argument 2 of the step, layers[1].kernel, holds no array; initialise it first");
}

TEST_CASE("One object passed twice is refused where the step writes it, and read where it does not") {
  auto model = ts::init<pair_of_layers>(ts::nn::rngs{0});
  auto other = model;
  CHECK(message_of([&] { ts::jit<halving>(model, model); }) ==
        "jit: arguments 1 and 2 of the step are one object, or one is part of the other, and the step writes it; pass "
        "it once");
  CHECK(message_of([&] { ts::jit<halving>(model, other); }) == "nothing");
  CHECK(ts::jit<reading>(model, model).to_vector().size() == 2);
}
