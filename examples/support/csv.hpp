// SPDX-License-Identifier: Apache-2.0
// A table of measurements that is saved as comma-separated values.
#pragma once

#include <tessera/core/atomic_file.hpp>

#include <charconv>
#include <concepts>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace examples {

/// Rows are collected in memory; save() writes all of them at once, so the file on disk is always a whole table:
///
///     examples::csv table{dir / "metrics.csv", {"epoch", "loss"}};
///     table.row(1, 0.52);
///     table.save();
///
/// Numbers are written with the fewest digits that read back as the same value; text is quoted where it has to be.
class csv {
 public:
  csv(std::filesystem::path path, const std::vector<std::string>& columns)
      : path_{std::move(path)}, columns_{columns.size()} {
    if (columns.empty()) throw std::invalid_argument{"csv: " + path_.string() + " needs at least one column"};
    std::vector<std::string> names;
    for (const auto& name : columns) names.push_back(field(name));
    append(names);
  }

  /// Adds one row; std::invalid_argument unless it has one value a column.
  template <class... Values>
  void row(const Values&... values) {
    if (sizeof...(values) != columns_) {
      throw std::invalid_argument{"csv: " + path_.string() + " has " + std::to_string(columns_) +
                                  " columns, but the row has " + std::to_string(sizeof...(values)) + " values"};
    }
    append({field(values)...});
  }

  /// Replaces the file by the rows so far.
  void save() const { tessera::write_file(path_, text_); }

  /// The file's content as save() would write it.
  const std::string& text() const { return text_; }

 private:
  static std::string field(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string{text};
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
    return quoted + '"';
  }

  template <class T>
  requires std::integral<T> || std::floating_point<T>
  static std::string field(T value) {
    char digits[64];
    return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
  }

  void append(const std::vector<std::string>& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) text_ += (i == 0 ? "" : ",") + fields[i];
    text_ += '\n';
  }

  std::filesystem::path path_;
  std::size_t columns_;
  std::string text_;
};

}  // namespace examples
