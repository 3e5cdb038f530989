// SPDX-License-Identifier: Apache-2.0
// A strict command line: every option is known, has a value of the right kind and range, and is given at most once.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace examples {

/// A command line that cannot be followed; what() names the option, its value and what it may be.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A whole or floating-point number an option can hold.
template <class T>
concept Number = std::integral<T> || std::floating_point<T>;

/// Options are declared with the variable that holds their default and takes their value; then the line is parsed:
///
///     examples::args args{"fashion", "Trains a classifier on Fashion-MNIST."};
///     args.number("--epochs", epochs, 1, 10'000, "passes over the training images");
///     args.parse_or_exit(argc, argv);
///
/// A value stands after its option or after an equals sign: `--epochs 5`, `--epochs=5`. The variables must outlive
/// parse.
class args {
 public:
  args(std::string program, std::string purpose) : program_{std::move(program)}, purpose_{std::move(purpose)} {}

  /// An option whose value is a number from `least` to `most`, both included.
  template <Number T>
  void number(std::string name, T& value, std::type_identity_t<T> least, std::type_identity_t<T> most,
              std::string help) {
    const std::string range = std::string{std::integral<T> ? "a whole number" : "a number"} + " from " +
                              printed(least) + " to " + printed(most);
    add(std::move(name), "N", help + ": " + range + " (default " + printed(value) + ")",
        [&value, least, most, range](std::string_view text) -> std::string {
          T read{};
          const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), read);
          const bool whole_text = failure == std::errc{} && end == text.data() + text.size();
          if (!whole_text || !(read >= least && read <= most)) return range;
          value = read;
          return {};
        });
  }

  /// An option whose value is any text but the empty one; `kind` stands for it in the help.
  void text(std::string name, std::string& value, std::string kind, std::string help) {
    add(std::move(name), std::move(kind), help + " (default " + value + ")",
        [&value](std::string_view given) -> std::string {
          if (given.empty()) return "a text that is not empty";
          value = given;
          return {};
        });
  }

  /// An option whose value is one of a few words.
  void choice(std::string name, std::string& value, std::initializer_list<std::string_view> words, std::string help) {
    std::string listed;
    for (const auto word : words) listed += (listed.empty() ? "" : " | ") + std::string{word};
    add(std::move(name), "WORD", help + ": " + listed + " (default " + value + ")",
        [&value, listed, allowed = std::vector<std::string_view>(words)](std::string_view given) -> std::string {
          for (const auto word : allowed) {
            if (word != given) continue;
            value = given;
            return {};
          }
          return listed;
        });
  }

  /// Sets the variables; throws usage_error at the first thing it cannot follow. True if help was asked for instead.
  bool parse(const std::vector<std::string_view>& words) {
    for (auto& each : options_) each.given = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == "--help" || words[i] == "-h") return true;
      const auto equals = words[i].starts_with("--") ? words[i].find('=') : std::string_view::npos;
      option& found = named(words[i].substr(0, equals));
      if (equals != std::string_view::npos) {
        take(found, words[i].substr(equals + 1));
      } else if (i + 1 == words.size() || words[i + 1].starts_with("--")) {
        throw usage_error{program_ + ": " + found.name + " has no value; " + found.name + " is " + found.help};
      } else {
        take(found, words[++i]);
      }
    }
    return false;
  }

  /// As parse; a usage error is printed on stderr and ends the program with exit code 2, help on stdout with 0.
  void parse_or_exit(int argc, const char* const* argv) {
    try {
      if (!parse({argv + 1, argv + argc})) return;
      std::fputs(help().c_str(), stdout);
      std::exit(0);
    } catch (const usage_error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::exit(2);
    }
  }

  /// What --help prints.
  std::string help() const {
    std::string text = purpose_ + "\n\nusage: " + program_;
    std::string details;
    for (const auto& each : options_) {
      text += " [" + each.name + " " + each.kind + "]";
      details += "  " + each.name + " " + each.kind + "\n      " + each.help + "\n";
    }
    return text + "\n\n" + details + "  --help\n      prints this\n";
  }

 private:
  /// Stores a value, or says what it should have been.
  using setter = std::function<std::string(std::string_view)>;
  struct option {
    std::string name, kind, help;
    setter set;
    bool given = false;
  };

  template <Number T>
  static std::string printed(T value) {
    char digits[64];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  }

  void add(std::string name, std::string kind, std::string help, setter set) {
    options_.push_back({std::move(name), std::move(kind), std::move(help), std::move(set)});
  }

  option& named(std::string_view name) {
    std::string known;
    for (auto& each : options_) {
      if (each.name == name) return each;
      known += each.name + ", ";
    }
    throw usage_error{program_ + ": unknown option '" + std::string{name} + "'; options are " + known + "--help"};
  }

  void take(option& found, std::string_view value) {
    if (std::exchange(found.given, true)) {
      throw usage_error{program_ + ": " + found.name + " is given twice, the second time as '" + std::string{value} +
                        "'; give it once"};
    }
    const std::string wanted = found.set(value);
    if (wanted.empty()) return;
    throw usage_error{program_ + ": " + found.name + " is '" + std::string{value} + "'; it must be " + wanted};
  }

  std::string program_, purpose_;
  std::vector<option> options_;
};

}  // namespace examples
