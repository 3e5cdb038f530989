// SPDX-License-Identifier: Apache-2.0
// Arguments of optimisers and schedules: numbers that a step sees as its own arguments, and those that are refused.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>
#include <tessera/graph/paths.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/nn/variable.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace tessera::optim {

/// An argument of an optimiser, refused with value_error unless it lies in [low, high).
double checked(const char* name, double value, double low, double high);

/// `value` unless it is NaN, infinite or does not hold; then value_error with function, name, value and range.
double checked(const char* function, const char* name, double value, bool holds, const std::string& range);

/// The number a scalar holds on the host.
float number_of(const nn::scalar& s);
/// Whether a path is a name or ends with it, as `parts[1].learning_rate` does with `learning_rate`.
constexpr bool ends_with_name(std::string_view path, std::string_view name) {
  return path == name ||
         (path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '.');
}

/// Raises value_error: `name` is no hyperparameter, or several end with it; `known` lists them.
[[noreturn]] void refuse_hyperparam(std::string_view name, int found, const std::string& known);

/// Calls f with the one hyperparameter whose path ends with `name`.
template <class T, class F>
void with_hyperparam(T& transformation, std::string_view name, F&& f) {
  int found = 0;
  std::string known;
  visit_paths(transformation, [&](const member_path& path, auto&) {
    found += ends_with_name(path.view(), name) ? 1 : 0;
    known += (known.empty() ? "" : ", ") + std::string(path.view());
  });
  if (found != 1) refuse_hyperparam(name, found, known);
  visit_paths(transformation, [&](const member_path& path, auto& v) {
    if (ends_with_name(path.view(), name)) f(v);
  });
}

/// Calls f with what holds 1 minus the hyperparameter: `rest1` beside `b1`, `rest` beside `decay` and `beta`.
template <class T, class F>
void with_complement(T& transformation, std::string_view name, F&& f) {
  visit_paths(transformation, [&](const member_path& path, auto&) {
    if (!ends_with_name(path.view(), name)) return;
    const std::string full(path.view());
    const std::size_t dot = full.rfind('.') == std::string::npos ? 0 : full.rfind('.') + 1;
    const std::string last = full.substr(dot);
    const bool numbered = last.size() == 2 && last[0] == 'b';
    if (!numbered && last != "decay" && last != "beta") return;
    const std::string wanted = full.substr(0, dot) + (numbered ? "rest" + last.substr(1) : "rest");
    visit_paths(transformation, [&](const member_path& other, auto& v) {
      if (other.view() == wanted) f(v);
    });
  });
}

constexpr graph::value traced_number(const nn::scalar& s) { return graph::seen(s.handle.owner, s.handle.id); }

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED double checked(const char* name, double value, double low, double high) {
  if (!(value >= low && value < high))
    throw value_error("optim: " + std::string(name) + " is " + number_text(value) + "; it must be in [" +
                      number_text(low) + ", " + number_text(high) + ")");
  return value;
}

TESSERA_COMPILED double checked(const char* function, const char* name, double value, bool holds,
                                const std::string& range) {
  if (!holds || !std::isfinite(value))
    throw value_error(std::string(function) + ": " + name + " is " + number_text(value) + "; it must be " + range);
  return value;
}

TESSERA_COMPILED void refuse_hyperparam(std::string_view name, int found, const std::string& known) {
  throw value_error("optim: " + std::string(name) + " names " + number_text(found) +
                    " hyperparameters; it must name one of " + known);
}

TESSERA_COMPILED float number_of(const nn::scalar& s) {
  if (!s.data)
    throw value_error("optim: a hyperparameter holds no number; make its schedule or optimiser by its function");
  float value;
  runtime::copy_to_host(*s.data, &value);
  return value;
}

#endif

}  // namespace tessera::optim
