// SPDX-License-Identifier: Apache-2.0
// Section 6.9: six optimisers on one problem, 500 steps each, by the steps of examples/race.
#include <catch2/catch.hpp>

#include <race/race.hpp>

#include <map>
#include <string>
#include <vector>

#include "reference/reference.hpp"

namespace {

std::vector<float> load(const std::string& file) {
  const auto array = reference::load_npy<float>(file);
  return {array.begin(), array.end()};
}

race::problem reference_problem() {
  race::problem given{load("s6_9_opt_x.npy"), load("s6_9_opt_y.npy"), {}};
  for (int layer = 0; layer < race::problem::layers; ++layer)
    given.kernels[layer] = load("s6_9_opt_w" + std::to_string(layer) + ".npy");
  return given;
}

const race::outcome& outcome_of(const std::string& name) {
  static const std::map<std::string, race::outcome> all = [] {
    std::map<std::string, race::outcome> made;
    const race::problem given = reference_problem();
    for (const race::contender& one : race::contenders()) made.emplace(one.name, one.run(given, 500));
    return made;
  }();
  return all.at(name);
}

reference::json trajectory(const std::string& name) {
  reference::json at;
  for (const std::size_t step : {1U, 2U, 5U, 10U, 20U, 50U}) at[std::to_string(step)] = outcome_of(name).losses[step];
  return at;
}

}  // namespace

TEST_CASE("all begin with the reference loss") {
  for (const race::contender& one : race::contenders())
    CHECK(reference::check("opt_initial_loss", outcome_of(one.name).losses.front()));
}

TEST_CASE("losses go down as the reference's do") {
  CHECK(reference::check("opt_trajectory_sgd+momentum", trajectory("sgd+momentum")));
  CHECK(reference::check("opt_trajectory_adamw", trajectory("adamw")));
  CHECK(reference::check("opt_trajectory_lamb", trajectory("lamb")));
}

TEST_CASE("final losses are the reference's") {
  CHECK(reference::check("opt_final_sgd+momentum", outcome_of("sgd+momentum").losses.back()));
  CHECK(reference::check("opt_final_adamw", outcome_of("adamw").losses.back()));
  CHECK(reference::check("opt_final_adafactor", outcome_of("adafactor").losses.back()));
  CHECK(reference::check("opt_final_lion", outcome_of("lion").losses.back()));
  // Only bounds are known of these: the end of the run is rounding noise.
  CHECK(outcome_of("lamb").losses.back() < 1e-5);
  CHECK(outcome_of("lars").losses.back() < 1e-3);
}

TEST_CASE("state costs what the reference says, a byte of parameters of that network") {
  CHECK(reference::check("opt_state_ratio_sgd+momentum", outcome_of("sgd+momentum").state_bytes));
  CHECK(reference::check("opt_state_ratio_adamw", outcome_of("adamw").state_bytes));
  CHECK(reference::check("opt_state_ratio_adafactor", outcome_of("adafactor").state_bytes));
  CHECK(reference::check("opt_state_ratio_lion", outcome_of("lion").state_bytes));
}
