// SPDX-License-Identifier: Apache-2.0
// A module in print: a table of its variables, their types and their bytes.
#pragma once

#include <tessera/core/resolve.hpp>
#include <tessera/core/type_text.hpp>
#include <tessera/graph/paths.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace tessera {

namespace analysis {

/// A line of the table: name, type, role, bytes.
using table_row = std::array<std::string, 4>;

/// What a kind of variables is called; kinds without a name are called variables.
template <class Kind>
constexpr std::string_view role_name() {
  if constexpr (requires { std::string_view(Kind::name); }) return Kind::name;
  else return "variable";
}

/// Columns padded to one width, two blanks in between, the last one flush right.
inline std::string aligned_table(const std::vector<table_row>& rows) {
  std::array<std::size_t, 4> widths{};
  for (const table_row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const table_row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      text += i + 1 == row.size() ? blanks + row[i] + "\n" : row[i] + blanks + "  ";
    }
  }
  return text;
}

/// Elements of whole arrays, and bytes on one device.
struct size_total {
  std::string role{};
  std::int64_t elements = 0;
  std::int64_t bytes = 0;

  void add(const aval& type, const mesh_value& mesh) {
    elements += type.size();
    bytes += local_block(type, mesh).bytes();
  }
  table_row row() const { return {"total", std::to_string(elements) + " elements", role, std::to_string(bytes)}; }
};

/// The table of the variables of a default-constructed object, all of which fit the mesh.
template <class T, class Mesh>
std::string description() {
  std::vector<table_row> rows{{"name", "type", "role", "bytes per device"}};
  std::vector<size_total> by_role;
  size_total all{"all"};
  const std::remove_const_t<T> object{};
  visit_paths(object, [&](const member_path& path, const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    constexpr aval type = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
    const std::string role(role_name<typename V::variable_kind>());
    rows.push_back({std::string(path.view()), std::string(aval_text<type, Mesh>.view()), role,
                    std::to_string(local_block(type, Mesh::value).bytes())});
    auto found = std::find_if(by_role.begin(), by_role.end(), [&](const size_total& t) { return t.role == role; });
    if (found == by_role.end()) found = by_role.insert(found, size_total{role});
    found->add(type, Mesh::value);
    all.add(type, Mesh::value);
  });
  for (const size_total& total : by_role) rows.push_back(total.row());
  if (by_role.size() != 1) rows.push_back(all.row());
  return aligned_table(rows);
}

}  // namespace analysis

/// A table of a module's variables, one a line: path, type, role (the kind of variable), bytes on one device of the
/// mesh; then totals, elements counted over whole arrays. `describe(model)` and `describe(optimizer)` for what is bound
/// to a mesh, `describe<mlp, cluster>()` for a type. What names no members, or does not fit the mesh, does not compile.
template <class T, class Mesh = typename T::mesh_type>
std::string describe() {
  check_module<T>();
  if constexpr (fits<T, Mesh>()) return analysis::description<T, Mesh>();
  else return {};
}
template <class T>
requires requires { typename T::mesh_type; }
std::string describe(const T&) { return describe<T>(); }

}  // namespace tessera
