// SPDX-License-Identifier: Apache-2.0
// Reference values for tests: find a case by name, compare a result with it by its own tolerance, load a fixture.
#pragma once

#include <cmath>
#include <fstream>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xnpy.hpp>

#ifndef TESSERA_REFERENCE_DIR
#error "define TESSERA_REFERENCE_DIR as the path of tests/reference"
#endif

namespace reference {

using json = nlohmann::json;

/// What a comparison found. Converts to true if it holds; prints as the sentence that says where it does not, so that
/// `CHECK(reference::check("name", got))` reports expected, got and tolerance.
struct outcome {
  std::string failure;
  explicit operator bool() const { return failure.empty(); }
  friend std::ostream& operator<<(std::ostream& out, const outcome& o) {
    return out << (o ? std::string("agrees with the reference") : o.failure);
  }
};

inline std::string path(const std::string& file) { return std::string(TESSERA_REFERENCE_DIR) + "/" + file; }

inline json load_json(const std::string& file) {
  std::ifstream in(path(file));
  if (!in) throw std::runtime_error("reference: cannot read " + path(file));
  return json::parse(in);
}

/// The whole case `name` of expected.json; an unknown name throws.
inline const json& find_case(const std::string& name) {
  static const json all = load_json("expected.json");
  for (const json& one : all.at("cases"))
    if (one.at("name") == name) return one;
  throw std::out_of_range("reference: no case \"" + name + "\" in expected.json");
}

inline const json& expected(const std::string& name) { return find_case(name).at("expected"); }

/// The array in data/`file`, as `reference::load_npy<float>("s6_8_x.npy")`.
template <class T>
xt::xarray<T> load_npy(const std::string& file) {
  return xt::load_npy<T>(path("data/" + file));
}

namespace detail {

inline outcome differ(const std::string& where, const json& want, const json& got, const json& rule) {
  return {where + ": expected " + want.dump() + ", got " + got.dump() + ", tolerance " + rule.dump()};
}

inline bool within(double want, double got, const json& rule) {
  if (std::isnan(got)) return false;
  if (rule.contains("at_most")) return got <= want;
  if (rule.contains("min") || rule.contains("max"))
    return (!rule.contains("min") || got >= rule["min"].get<double>()) &&
           (!rule.contains("max") || got <= rule["max"].get<double>());
  return std::abs(got - want) <= rule.value("atol", 0.0) + rule.value("rtol", 0.0) * std::abs(want);
}

/// A rule has one meaning: words that do not belong together, or that nobody here knows, are a broken test.
inline void require_known(const json& rule) {
  int kinds = rule.contains("exact") + rule.contains("at_most") + rule.contains("fields") +
              (rule.contains("rtol") || rule.contains("atol")) + (rule.contains("min") || rule.contains("max"));
  for (const auto& [word, value] : rule.items()) {
    if (word == "note" || word == "sum_atol" || word == "fields") continue;
    const bool flag = word == "exact" || word == "at_most";
    const bool bound = word == "rtol" || word == "atol" || word == "min" || word == "max";
    if (!(flag && value == true) && !(bound && value.is_number())) kinds = 0;
  }
  if (kinds != 1) throw std::invalid_argument("reference: not a tolerance: " + rule.dump());
}

inline outcome compare_at(const std::string& where, const json& want, const json& got, const json& rule);

inline outcome compare_fields(const std::string& where, const json& want, const json& got, const json& rule) {
  for (const auto& [name, one] : rule.at("fields").items()) {
    if (!want.contains(name)) throw std::invalid_argument("reference: a rule for an absent field: " + name);
    if (!got.is_object() || !got.contains(name)) return differ(where + "." + name, want[name], nullptr, one);
    if (outcome o = compare_at(where + "." + name, want[name], got[name], one); !o) return o;
  }
  return {};
}

inline outcome compare_entries(const std::string& where, const json& want, const json& got, const json& rule) {
  if (want.type() != got.type() || want.size() != got.size()) return differ(where, want, got, rule);
  for (const auto& [name, entry] : want.items()) {
    const std::string inner = where + (want.is_array() ? "[" + name + "]" : "." + name);
    if (want.is_object() && !got.contains(name)) return differ(inner, entry, nullptr, rule);
    const json& other = want.is_array() ? got[std::stoul(name)] : got[name];
    if (outcome o = compare_at(inner, entry, other, rule); !o) return o;
  }
  return {};
}

inline outcome compare_at(const std::string& where, const json& want, const json& got, const json& rule) {
  require_known(rule);
  if (rule.contains("fields")) return compare_fields(where, want, got, rule);
  if (want.is_structured()) return compare_entries(where, want, got, rule);
  const bool numbers = want.is_number() && got.is_number();
  const bool holds =
      numbers && !rule.contains("exact") ? within(want.get<double>(), got.get<double>(), rule) : want == got;
  return holds ? outcome{} : differ(where, want, got, rule);
}

}  // namespace detail

/// Compares `got` (number, bool, string, nested container or json) with `want` by `rule`; README.md states the rules.
template <class T>
outcome compare(const json& want, const T& got, const json& rule, const std::string& name = "value") {
  return detail::compare_at(name, want, json(got), rule);
}

/// Compares `got` with the case `name` of expected.json by the case's tolerance.
template <class T>
outcome check(const std::string& name, const T& got) {
  const json& one = find_case(name);
  return compare(one.at("expected"), got, one.at("tolerance"), name);
}

}  // namespace reference
