// SPDX-License-Identifier: Apache-2.0
// Which device holds which part of an array: box drawings and pictures.
#pragma once

#include <tessera/analysis/svg.hpp>
#include <tessera/core/diagnose.hpp>
#include <tessera/core/error.hpp>
#include <tessera/core/shards.hpp>
#include <tessera/core/type_text.hpp>
#include <tessera/graph/expr.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

namespace analysis {

/// One block of an array and the devices that hold it, in order.
struct shard_cell {
  std::vector<std::int64_t> devices{};

  /// `CPU 0,4`
  std::string label() const {
    std::string text = "CPU ";
    for (std::size_t i = 0; i < devices.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(devices[i]);
    return text;
  }
};

/// The distinct blocks of an array as a grid, row-major; an array of one dimension is one row.
struct shard_grid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::vector<shard_cell> cells{};

  const shard_cell& at(std::int64_t row, std::int64_t column) const {
    return cells[static_cast<std::size_t>(row * columns + column)];
  }
};

/// The blocks of an array of one or two dimensions.
inline shard_grid shard_grid_of(const aval& type, const mesh_value& mesh) {
  const axis_list column_axes = type.dims[type.rank - 1].axes;
  const axis_list row_axes = type.rank == 2 ? type.dims[0].axes : 0;
  shard_grid grid{devices_along(row_axes, mesh), devices_along(column_axes, mesh)};
  grid.cells.resize(static_cast<std::size_t>(grid.rows * grid.columns));
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    const std::int64_t place =
        block_index(device, row_axes, mesh) * grid.columns + block_index(device, column_axes, mesh);
    grid.cells[static_cast<std::size_t>(place)].devices.push_back(device);
  }
  return grid;
}

/// Width and height of a drawing, in characters: rows are 10 lines high in all, a character is 2.5 times as high as
/// wide, and no drawing is wider than 80 characters on account of its shape.
struct drawing_size {
  std::int64_t width;
  std::int64_t height;

  drawing_size(const aval& type, const shard_grid& grid, std::int64_t longest_label) {
    const std::int64_t across = type.rank == 2 ? type.dims[1].extent : 1;
    const std::int64_t down = std::max<std::int64_t>(type.dims[0].extent, 1);
    const std::int64_t total = std::min<std::int64_t>(25 * across / down, 80);
    width = std::max({total / grid.columns - 2, longest_label, std::int64_t{7}});
    height = std::max<std::int64_t>(10 / grid.rows - 1, 1);
  }
};

inline std::string repeated(std::string_view what, std::int64_t times) {
  std::string text;
  for (std::int64_t i = 0; i < times; ++i) text += what;
  return text;
}

/// A rule of the drawing: `left`, a line a column with `between` in between, `right`.
inline std::string drawn_rule(const shard_grid& grid, std::int64_t width, const char* left, const char* between,
                              const char* right) {
  std::string text = left;
  for (std::int64_t column = 0; column < grid.columns; ++column)
    text += (column > 0 ? between : "") + repeated("─", width);
  return text + right + "\n";
}

/// One line of a row of cells; the labels stand on it, centred, if it is theirs.
inline std::string drawn_line(const shard_grid& grid, std::int64_t row, std::int64_t width, bool labels) {
  std::string text;
  for (std::int64_t column = 0; column < grid.columns; ++column) {
    const std::string label = labels ? grid.at(row, column).label() : "";
    const std::int64_t blank = width - static_cast<std::int64_t>(label.size());
    text += "│" + repeated(" ", blank / 2) + label + repeated(" ", blank - blank / 2);
  }
  return text + "│\n";
}

inline std::int64_t longest_label(const shard_grid& grid) {
  std::size_t longest = 0;
  for (const shard_cell& cell : grid.cells) longest = std::max(longest, cell.label().size());
  return static_cast<std::int64_t>(longest);
}

inline std::string sharding_text(const aval& type, const mesh_value& mesh) {
  const shard_grid grid = shard_grid_of(type, mesh);
  const drawing_size size(type, grid, longest_label(grid));
  std::string text = drawn_rule(grid, size.width, "┌", "┬", "┐");
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    if (row > 0) text += drawn_rule(grid, size.width, "├", "┼", "┤");
    for (std::int64_t line = 0; line < size.height; ++line)
      text += drawn_line(grid, row, size.width, line == (size.height - 1) / 2);
  }
  return text + drawn_rule(grid, size.width, "└", "┴", "┘");
}

inline std::string sharding_svg(const aval& type, const mesh_value& mesh) {
  constexpr const char* fills[] = {"#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2"};
  constexpr std::int64_t height = 40, margin = 10, heading = 30;
  const auto number = [](std::int64_t n) { return "\"" + std::to_string(n) + "\""; };
  const shard_grid grid = shard_grid_of(type, mesh);
  const std::int64_t width = std::max<std::int64_t>(8 * longest_label(grid) + 16, 80);
  text_buffer title;
  write_aval(title, type, mesh);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=" + number(2 * margin + width * grid.columns) +
                    " height=" + number(2 * margin + heading + height * grid.rows) +
                    " font-family=\"monospace\" font-size=\"13\">\n<text x=" + number(margin) +
                    " y=" + number(margin + 14) + ">" + escaped(title.view()) + "</text>\n";
  for (std::int64_t row = 0; row < grid.rows; ++row)
    for (std::int64_t column = 0; column < grid.columns; ++column) {
      const std::int64_t x = margin + column * width, y = margin + heading + row * height;
      const auto fill = static_cast<std::size_t>(row * grid.columns + column) % std::size(fills);
      svg += "<rect x=" + number(x) + " y=" + number(y) + " width=" + number(width) + " height=" + number(height) +
             " fill=\"" + fills[fill] + "\" fill-opacity=\"0.5\" stroke=\"black\"/>\n<text x=" + number(x + width / 2) +
             " y=" + number(y + height / 2 + 5) + " text-anchor=\"middle\">" + grid.at(row, column).label() +
             "</text>\n";
    }
  return svg + "</svg>\n";
}

/// Whether an array of this type can be drawn; otherwise the build stops.
template <class T>
constexpr bool drawable() {
  constexpr auto rank = [] {
    if constexpr (Variable<T>) return T::shape_type::rank;
    else return T::type.rank;
  }();
  if constexpr (rank < 1 || rank > 2)
    return !diagnose(report<message::visualize_rank, [] {
      text_buffer out;
      if constexpr (Variable<T>) out << "a variable of " << rank << " dimensions";
      else out << type_text<T>();
      return out;
    }>);
  else return true;
}

/// What `draw(type, mesh)` makes of an array; a variable knows its mesh when it holds one.
template <class T, class Draw>
std::string drawn(const T& x, Draw draw) {
  if constexpr (!drawable<T>()) {
    return {};
  } else if constexpr (Variable<T>) {
    if (!x.data)
      throw value_error("visualize_array_sharding: the variable holds no array; initialise its module with init first");
    return draw(x.data->type, x.data->mesh);
  } else {
    return draw(T::type, T::mesh_type::value);
  }
}

}  // namespace analysis

/// The boxes that `visualize_array_sharding` prints, as text; each line ends with a line break.
template <class T>
std::string array_sharding_text(const T& x = {}) {
  return analysis::drawn(x, analysis::sharding_text);
}

/// The same as a picture: the text of an SVG file.
template <class T>
std::string array_sharding_svg(const T& x = {}) {
  return analysis::drawn(x, analysis::sharding_svg);
}

/// Prints one box a distinct block, with the numbers of all devices that hold it: `visualize_array_sharding(x)` for a
/// tensor or a variable of an initialised module, `visualize_array_sharding<T>()` for the type of a tensor or a traced
/// array. Arrays of one dimension are one row; other ranks than 1 and 2 do not compile, a variable that holds no array
/// raises value_error. Source: jax.debug.visualize_array_sharding.
template <class T>
void visualize_array_sharding(const T& x = {}) {
  std::fputs(array_sharding_text(x).c_str(), stdout);
}

}  // namespace tessera
