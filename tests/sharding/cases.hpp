// SPDX-License-Identifier: Apache-2.0
// Reads reference/sharding_rules.jsonl: types, specs and meshes in its notation, as abstract values.
#pragma once

#include <tessera/core/resolve.hpp>

#include <nlohmann/json.hpp>

#include <cctype>
#include <deque>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cases {

using nlohmann::json;
namespace ts = tessera;

struct test_case {
  std::string id;
  std::string op;
  std::vector<std::string> inputs;
  std::deque<std::string> axis_names;
  ts::mesh_value mesh{};
  json params;
  std::string out;    ///< empty if there is none
  std::string error;  ///< empty if there is none
};

/// Whether a text says that a value is varying, unreduced or reduced over some axis.
inline bool has_pending_axes(const std::string& text) { return text.find('{') != text.npos; }

inline ts::dtype dtype_named(std::string_view name) {
  if (name == "f32") return ts::f32;
  if (name == "i32") return ts::i32;
  if (name == "u32") return ts::u32;
  if (name == "bool") return ts::bool_;
  if (name == "bf16") return ts::bf16;
  throw std::runtime_error("unknown dtype " + std::string(name));
}

/// `x`, or `(x,y)` with the position moved behind it.
inline std::vector<std::string> axes_at(std::string_view text, std::size_t& at) {
  std::vector<std::string> names;
  const bool several = text[at] == '(';
  if (several) ++at;
  for (;;) {
    std::string name;
    while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_'))
      name += text[at++];
    names.push_back(name);
    if (!several) return names;
    if (text[at++] == ')') return names;
  }
}

/// `f32[8@x,4@(x,y)]`
inline ts::aval read_type(std::string_view text, const ts::mesh_value& mesh) {
  ts::aval a;
  std::size_t at = text.find('[');
  a.type = dtype_named(text.substr(0, at));
  ++at;
  while (text[at] != ']') {
    ts::dim d;
    while (std::isdigit(static_cast<unsigned char>(text[at])) != 0) d.extent = 10 * d.extent + (text[at++] - '0');
    if (text[at] == '@') {
      ++at;
      for (const std::string& name : axes_at(text, at)) d.axes = ts::axis_append(d.axes, mesh.find(name));
    }
    a.dims[a.rank++] = d;
    if (text[at] == ',') ++at;
  }
  return a;
}

/// `P('x',None)`, `P(('x','y'))`, `P()`
inline ts::spec_value read_spec(std::string_view text, const ts::mesh_value& mesh) {
  ts::spec_value spec;
  std::size_t at = 2;
  bool inside = false;
  const auto next_entry = [&] { ++spec.rank; };
  while (at + 1 < text.size()) {
    const char c = text[at];
    if (c == '(') inside = true, ++at;
    else if (c == ')') inside = false, next_entry(), ++at;
    else if (c == 'N') next_entry(), at += 4;
    else if (c == '\'') {
      const std::size_t end = text.find('\'', at + 1);
      const std::string_view name = text.substr(at + 1, end - at - 1);
      if (const int axis = mesh.find(name); axis < 0) spec.unknown = {spec.rank, name};
      else spec.dims[spec.rank] = ts::axis_append(spec.dims[spec.rank], axis);
      if (!inside) next_entry();
      at = end + 1;
    } else ++at;
  }
  return spec;
}

/// Every case; where the file has a ruling of ours, it stands in the place of the other one.
inline std::deque<test_case> read_all(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::deque<test_case> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    const json object = json::parse(line);
    test_case& c = all.emplace_back();
    c.id = object.at("id");
    c.op = object.at("op");
    c.inputs = object.at("inputs").get<std::vector<std::string>>();
    c.params = object.at("params");
    for (const auto& [name, size] : object.at("mesh").items()) {
      const auto place = static_cast<std::size_t>(c.mesh.rank++);
      c.mesh.names[place] = c.axis_names.emplace_back(name);
      c.mesh.sizes[place] = size;
    }
    if (!object.at("out").is_null()) c.out = object.at("out");
    if (!object.at("error").is_null()) c.error = object.at("error");
    if (object.contains("tessera")) {
      const std::string ours = object.at("tessera");
      const bool refused = ours.starts_with("error");
      c.error = refused ? ours : "";
      c.out = refused ? "" : ours;
    }
  }
  return all;
}

}  // namespace cases
