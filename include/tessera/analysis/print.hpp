// SPDX-License-Identifier: Apache-2.0
// A program in print.
#pragma once

#include <tessera/core/text.hpp>
#include <tessera/graph/op.hpp>
#include <tessera/graph/program.hpp>

#include <array>
#include <string_view>

namespace tessera::analysis {

/// Text in a constant; what does not fit is only counted.
template <std::size_t Capacity>
struct printed_text {
  std::array<char, Capacity> chars{};
  std::size_t size = 0;

  constexpr printed_text& operator<<(std::string_view s) {
    for (char c : s) {
      if constexpr (Capacity > 0)
        if (size < Capacity) chars[size] = c;
      ++size;
    }
    return *this;
  }
  constexpr printed_text& operator<<(std::int64_t value) { return *this << (text_buffer{} << value).view(); }
};

template <std::size_t Capacity>
constexpr void print_buffer(printed_text<Capacity>& out, const graph::program& p, int b) {
  if (b < 0) {
    out << "position";
    return;
  }
  const graph::buffer& buffer = p.buffers[static_cast<std::size_t>(b)];
  if (buffer.where == graph::space::window) {
    out << (buffer.stride != 0 ? "slice of " : "");
    print_buffer(out, p, static_cast<int>(buffer.place));
    return;
  }
  if (buffer.where == graph::space::blocks) {
    out << "blocks";
    return;
  }
  constexpr std::string_view spaces[] = {"temp+", "arg", "result", "const", "", "host+", "rows+"};
  out << spaces[static_cast<int>(buffer.where)] << buffer.place;
}

template <std::size_t Capacity>
constexpr void print_sizes(printed_text<Capacity>& out, const graph::step& s) {
  const int shown = about(s.kind).shown;
  for (int i = 0; i < (shown < 0 ? s.rank : shown); ++i) out << (i == 0 ? " " : "x") << s.sizes[i];
}

/// The operations of a fused step, as in its instruction list.
template <std::size_t Capacity>
constexpr void print_code(printed_text<Capacity>& out, const graph::program& p, int code) {
  const auto first = static_cast<std::size_t>(p.codes[static_cast<std::size_t>(code)].first);
  const int sources = p.words[first + 1].value;
  const int instructions = p.words[first + 2].value;
  for (int i = 0; i < instructions; ++i) {
    const auto at = first + static_cast<std::size_t>(graph::instruction_word(sources, i));
    out << (i == 0 ? " {" : " ") << about(static_cast<graph::op>(p.words[at].value)).name;
  }
  out << "}";
}

template <std::size_t Capacity>
constexpr void print_axes(printed_text<Capacity>& out, axis_list axes, const mesh_value& mesh) {
  for (int i = 0; i < axis_count(axes); ++i) out << (i == 0 ? " over " : ",") << mesh.name(axis_at(axes, i));
}

template <std::size_t Capacity>
constexpr void print_varying(printed_text<Capacity>& out, axis_set varying, const mesh_value& mesh) {
  bool first = true;
  for (int i = 0; i < mesh.rank; ++i) {
    if (!(varying & bit_of(i))) continue;
    out << (first ? " on each of " : ",") << mesh.name(i);
    first = false;
  }
}

template <std::size_t Capacity>
constexpr void print_interface(printed_text<Capacity>& out, std::string_view what, std::int64_t number,
                               const graph::interface_value& value, const mesh_value& mesh) {
  text_buffer type;
  write_aval(type, value.type, mesh);
  out << what << number << " " << type.view();
  if (value.alias >= 0) out << " in place of arg" << value.alias;
  out << "\n";
}

/// Arguments, one line a step (`results = kind sizes {operations} (sources) on each of axes`), results, arena.
template <std::size_t Capacity>
constexpr printed_text<Capacity> print(const graph::program& p, const mesh_value& mesh) {
  printed_text<Capacity> out;
  for (std::size_t i = 0; i < p.arguments.size(); ++i)
    print_interface(out, "arg", static_cast<std::int64_t>(i), p.arguments[i], mesh);
  graph::list<std::size_t> ends;  // of the control steps around a step
  for (std::size_t n = 0; n < p.steps.size(); ++n) {
    const graph::step& s = p.steps[n];
    while (!ends.empty() && ends.back() < n) ends.pop_back();
    out << "  ";
    for (std::size_t depth = 0; depth < ends.size(); ++depth) out << "  ";
    if (graph::is_control(s.kind)) ends.push_back(n + static_cast<std::size_t>(graph::steps_inside(s)));
    for (int i = 0; i < s.results; ++i) {
      if (i > 0) out << ", ";
      print_buffer(out, p, p.accesses[static_cast<std::size_t>(s.first + s.sources + i)].buffer);
    }
    out << (s.results > 0 ? " = " : "") << about(s.kind).name;
    print_sizes(out, s);
    if (s.code >= 0) print_code(out, p, s.code);
    out << " (";
    for (int i = 0; i < s.sources; ++i) {
      if (i > 0) out << ", ";
      print_buffer(out, p, p.accesses[static_cast<std::size_t>(s.first + i)].buffer);
    }
    out << ")";
    if (s.part != graph::product_part::none)
      out << (s.part == graph::product_part::finishes ? " with the product before" : " with the product behind");
    print_axes(out, s.axes, mesh);
    print_varying(out, s.varying, mesh);
    out << "\n";
  }
  for (std::size_t i = 0; i < p.results.size(); ++i)
    print_interface(out, "result", static_cast<std::int64_t>(i), p.results[i], mesh);
  out << "temp " << p.temporary_bytes << " bytes a device\n";
  if (p.host_bytes > 0) out << "host " << p.host_bytes << " bytes a device\n";
  return out;
}

}  // namespace tessera::analysis
