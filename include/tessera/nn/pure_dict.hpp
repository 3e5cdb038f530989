// SPDX-License-Identifier: Apache-2.0
// The variables of a module as host arrays by name, flat or nested.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/core/error.hpp>
#include <tessera/graph/paths.hpp>
#include <tessera/nn/variable.hpp>
#include <tessera/runtime/storage.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera::nn {

/// A whole array on the host, row-major.
struct host_array {
  dtype type = dtype::f32;
  std::vector<std::int64_t> extents{};
  std::vector<std::byte> bytes{};

  /// The elements; value_error if they are of another type.
  template <DtypeStorage T>
  std::vector<T> values() const {
    if (dtype_of<T> != type) report_element(dtype_of<T>);
    std::vector<T> result(bytes.size() / sizeof(T));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  friend bool operator==(const host_array&, const host_array&) = default;

 private:
  [[noreturn]] void report_element(dtype asked) const;
};

/// By flat dotted name: `layers[0].kernel`.
using flat_dict = std::map<std::string, host_array>;

/// The same, nested: the parts of a name, `layers`, `0`, `kernel`, lead to the array.
struct nested_dict {
  std::map<std::string, nested_dict> children{};
  std::optional<host_array> array{};

  const nested_dict& operator[](const std::string& name) const { return children.at(name); }
};
nested_dict nested(const flat_dict& flat);

/// Names and shapes, `{bn: {bias: [32], scale: [32]}}`.
std::string shapes_text(const nested_dict& dict);

/// The array that a storage holds, which `where` names.
host_array host_copy(const runtime::storage_ptr& data, std::string_view where);

/// Writes a host array to a variable of this type; shape_error or value_error, naming it, if it does not fit.
void put_array(runtime::storage_ptr& to, const aval& type, const mesh_value& mesh, const host_array& from,
               std::string_view where);

/// Raises value_error unless the name is one of these paths.
void check_name(const std::string& name, const std::vector<std::string>& paths);

/// All variables of a module or state, copied to the host. One without an array raises value_error. Source:
/// flax.nnx.to_pure_dict.
template <class T>
flat_dict to_pure_dict(const T& object) {
  flat_dict dict;
  visit_paths(object, [&](const member_path& p, const auto& v) {
    dict.emplace(std::string(p.view()), host_copy(v.data, p.view()));
  });
  return dict;
}

/// Gives the variables of a bound module the arrays of these names. A name that is no variable's raises value_error, an
/// array of another dtype or shape too; then nothing is changed. Source: flax.nnx.replace_by_pure_dict.
template <class T>
void replace_by_pure_dict(T& object, const flat_dict& dict) {
  T replaced = object;
  std::vector<std::string> paths;
  visit_paths(object, [&](const member_path& p, const auto&) { paths.emplace_back(p.view()); });
  std::size_t next = 0, found = 0;
  visit_variables(replaced, [&](auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    using M = typename T::mesh_type;
    const std::string& name = paths[next++];
    const auto given = dict.find(name);
    if (given == dict.end()) return;
    constexpr aval type = resolve<V::element, typename V::shape_type, typename V::spec_type, M>().result;
    put_array(v.data, type, M::value, given->second, name);
    ++found;
  });
  if (found != dict.size())
    for (const auto& entry : dict) check_name(entry.first, paths);
  object = std::move(replaced);
}

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED void host_array::report_element(dtype asked) const {
  throw value_error("nn::host_array: elements are " + std::string(info(type).name) + ", not " +
                    std::string(info(asked).name));
}

TESSERA_COMPILED nested_dict nested(const flat_dict& flat) {
  nested_dict root;
  for (const auto& [name, array] : flat) {
    nested_dict* at = &root;
    for (std::size_t from = 0; from < name.size();) {
      const std::size_t end = std::min(name.find_first_of(".[]", from), name.size());
      if (end > from) at = &at->children[name.substr(from, end - from)];
      from = end + 1;
    }
    at->array = array;
  }
  return root;
}

TESSERA_COMPILED std::string shapes_text(const nested_dict& dict) {
  std::string text;
  if (dict.array) {
    for (const std::int64_t extent : dict.array->extents) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    return "[" + text + "]";
  }
  for (const auto& [name, child] : dict.children) text += (text.empty() ? "" : ", ") + name + ": " + shapes_text(child);
  return "{" + text + "}";
}

TESSERA_COMPILED host_array host_copy(const runtime::storage_ptr& data, std::string_view where) {
  if (!data) throw value_error("nn::to_pure_dict: " + std::string(where) + " holds no array; initialise it first");
  host_array array{data->type.type, {}, {}};
  for (int d = 0; d < data->type.rank; ++d) array.extents.push_back(data->type.dims[d].extent);
  array.bytes.resize(static_cast<std::size_t>(data->type.bytes()));
  runtime::copy_to_host(*data, array.bytes.data());
  return array;
}

TESSERA_COMPILED void put_array(runtime::storage_ptr& to, const aval& type, const mesh_value& mesh,
                                const host_array& from, std::string_view where) {
  bool fits = from.extents.size() == static_cast<std::size_t>(type.rank) &&
              from.bytes.size() == static_cast<std::size_t>(type.bytes());
  for (int d = 0; fits && d < type.rank; ++d) fits = from.extents[static_cast<std::size_t>(d)] == type.dims[d].extent;
  if (!fits)
    throw shape_error("nn::replace_by_pure_dict: the array for " + std::string(where) + " has " +
                      std::to_string(from.bytes.size()) + " bytes in " + std::to_string(from.extents.size()) +
                      " dimensions; its variable has other extents");
  if (from.type != type.type)
    throw value_error("nn::replace_by_pure_dict: the array for " + std::string(where) + " is of " +
                      std::string(info(from.type).name) + ", its variable of " + std::string(info(type.type).name));
  to = runtime::make_storage(type, mesh);
  runtime::copy_from_host(*to, from.bytes.data());
}

TESSERA_COMPILED void check_name(const std::string& name, const std::vector<std::string>& paths) {
  if (std::find(paths.begin(), paths.end(), name) == paths.end())
    throw value_error("nn::replace_by_pure_dict: the module has no variable " + name);
}

#endif

}  // namespace tessera::nn
