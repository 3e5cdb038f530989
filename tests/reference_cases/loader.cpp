// SPDX-License-Identifier: Apache-2.0
#include "reference/reference.hpp"

#include <limits>
#include <map>
#include <vector>

#include <catch2/catch.hpp>

using reference::compare;
using reference::json;

TEST_CASE("a reference case is found by its name and an unknown name throws") {
  CHECK(reference::expected("mixed_bytes_per_param") == 16);
  CHECK_THROWS_AS(reference::expected("no such case"), std::out_of_range);
}

TEST_CASE("every case of the reference file agrees with itself and has a rule that is understood") {
  const json all = reference::load_json("expected.json");
  REQUIRE(all.at("cases").size() == 123);
  for (const json& one : all.at("cases")) CHECK(reference::check(one.at("name"), one.at("expected")));
}

TEST_CASE("exact accepts equal values only") {
  const json rule{{"exact", true}};
  CHECK(compare(json{1, 2.5, true}, json{1.0, 2.5, true}, rule));
  CHECK_FALSE(compare(1.0, std::nextafter(1.0, 2.0), rule));
  CHECK_FALSE(compare(true, 1, rule));
  CHECK_FALSE(compare(json{1, 2}, std::vector<int>{1, 2, 3}, rule));
  CHECK_FALSE(compare(json{{"a", 1}}, std::map<std::string, int>{{"b", 1}}, rule));
}

TEST_CASE("rtol and atol add up, entry by entry") {
  CHECK(compare(json{100.0, -1.0}, std::vector<double>{101.0, -1.015}, json{{"rtol", 0.01}, {"atol", 0.01}}));
  CHECK_FALSE(compare(json{100.0, -1.0}, std::vector<double>{101.0, -1.025}, json{{"rtol", 0.01}, {"atol", 0.01}}));
  CHECK_FALSE(compare(0.0, 1e-30, json{{"rtol", 0.5}}));
  CHECK(compare(2.0, 2.5, json{{"atol", 0.5}}));
}

TEST_CASE("min and max bound the result whatever was expected, at_most bounds it by what was expected") {
  CHECK(compare(99.0, 5, json{{"min", 5}, {"max", 6}}));
  CHECK_FALSE(compare(5.5, 4.9, json{{"min", 5}, {"max", 6}}));
  CHECK_FALSE(compare(5.5, 6.1, json{{"max", 6}}));
  CHECK(compare(json{5, 0}, std::vector<int>{4, 0}, json{{"at_most", true}}));
  CHECK_FALSE(compare(json{5, 0}, std::vector<int>{4, 1}, json{{"at_most", true}}));
}

TEST_CASE("fields are checked each by its rule, entries without a rule are not") {
  const json want{{"a", 1.0}, {"b", json::array({1.0, 2.0})}, {"free", 3}};
  const json rule{{"fields", {{"a", {{"exact", true}}}, {"b", {{"atol", 0.1}}}}}};
  CHECK(compare(want, json{{"a", 1.0}, {"b", {1.05, 2.0}}}, rule));
  CHECK_FALSE(compare(want, json{{"a", 1.0}, {"b", {1.05, 2.2}}}, rule));
  CHECK_FALSE(compare(want, json{{"a", 1.0}}, rule));
}

TEST_CASE("a NaN satisfies no rule and a rule that is not understood throws") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const json& rule : {json{{"exact", true}}, json{{"rtol", 1}}, json{{"max", 1}}, json{{"at_most", true}}})
    CHECK_FALSE(compare(0.5, nan, rule));
  CHECK_THROWS_AS(compare(1, 1, json{{"roughly", 1}}), std::invalid_argument);
  CHECK_THROWS_AS(compare(1, 1, json::object()), std::invalid_argument);
  CHECK_THROWS_AS(compare(1, 1, json{{"exact", true}, {"atol", 1}}), std::invalid_argument);
  CHECK_THROWS_AS(compare(1, 1, json{{"exact", false}}), std::invalid_argument);
}

TEST_CASE("a failed comparison names the place, both values and the tolerance") {
  const std::string text = compare(json{1, 2}, std::vector<int>{1, 3}, json{{"atol", 0.5}}, "name").failure;
  CHECK(text == "name[1]: expected 2, got 3, tolerance {\"atol\":0.5}");
}

TEST_CASE("fixtures load with their shape and element type") {
  const auto images = reference::load_npy<float>("s6_4_images.npy");
  REQUIRE(images.dimension() == 2);
  CHECK(images.shape(0) == 64);
  CHECK(images.shape(1) == 784);
  CHECK(reference::load_npy<std::int32_t>("s6_4_labels.npy").size() == 64);
}
