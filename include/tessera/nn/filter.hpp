// SPDX-License-Identifier: Apache-2.0
// Choosing variables of a module by kind, role or path; the list of its leaves as a constant.
#pragma once

#include <tessera/core/error.hpp>
#include <tessera/core/shards.hpp>
#include <tessera/graph/paths.hpp>
#include <tessera/nn/variable.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace tessera::nn {

/// Filters. A kind (`param`, or one of your own) and a role (`role::bias`) are filters as they are.
struct everything {
  template <class V>
  static constexpr bool test(std::string_view) {
    return true;
  }
};
/// In a list of filters: what those before it leave.
using everything_else = everything;

/// The variable at a path or all those below it: `path<"layers[0]">`, `path<"head.bias">`.
template <text Path>
struct path {
  template <class V>
  static constexpr bool test(std::string_view p) {
    constexpr std::string_view wanted = Path.view();
    if (!p.starts_with(wanted)) return false;
    return p.size() == wanted.size() || p[wanted.size()] == '.' || p[wanted.size()] == '[';
  }
};

/// Variables whose path has this text in it.
template <text Part>
struct path_contains {
  template <class V>
  static constexpr bool test(std::string_view p) {
    return p.find(Part.view()) != std::string_view::npos;
  }
};

/// Whether a filter lets variable V through, which stands at `p`.
template <class Filter, class V>
constexpr bool passes(std::string_view p) {
  if constexpr (requires { Filter::template test<V>(p); }) return Filter::template test<V>(p);
  else return std::derived_from<typename V::variable_kind, Filter> || std::same_as<typename V::role, Filter>;
}

template <class... Filters>
struct any_of {
  template <class V>
  static constexpr bool test(std::string_view p) {
    return (false || ... || passes<Filters, V>(p));
  }
};
template <class... Filters>
struct all_of {
  template <class V>
  static constexpr bool test(std::string_view p) {
    return (true && ... && passes<Filters, V>(p));
  }
};
template <class Filter>
struct not_ {
  template <class V>
  static constexpr bool test(std::string_view p) {
    return !passes<Filter, V>(p);
  }
};

/// Variables in an object, and those of them that a filter lets through.
template <class T, class Filter = everything>
constexpr std::size_t leaf_count() {
  std::size_t count = 0;
  const std::remove_cvref_t<T> object{};
  visit_paths(object, [&](const member_path& p, const auto& v) {
    count += passes<Filter, std::remove_cvref_t<decltype(v)>>(p.view()) ? 1 : 0;
  });
  return count;
}

/// By leaf: whether a filter lets it through.
template <class T, class Filter>
inline constexpr auto selected = [] {
  std::array<bool, leaf_count<T>()> chosen{};
  std::size_t next = 0;
  const T object{};
  visit_paths(object, [&](const member_path& p, const auto& v) {
    chosen[next++] = passes<Filter, std::remove_cvref_t<decltype(v)>>(p.view());
  });
  return chosen;
}();

/// Calls f(variable) for the variables of an object that a filter lets through, in order.
template <class Filter, class T, class F>
constexpr void visit_selected(T& object, F&& f) {
  std::size_t next = 0;
  visit_variables(object, [&](auto& v) {
    if (selected<std::remove_const_t<T>, Filter>[next++]) f(v);
  });
}

/// A variable of a module type over a mesh.
struct leaf {
  std::string_view path{};  ///< `layers[0].kernel`
  std::string_view kind{};  ///< `param`
  std::string_view role{};  ///< `weight`; empty where none is given
  aval type{};
  std::string_view spec{};  ///< `P<none, "model">` as text: `(None, model)`
  std::int64_t bytes = 0;
  std::int64_t bytes_per_device = 0;
};

/// What a tag is called; kinds without a name are called `variable`.
template <class Tag>
constexpr std::string_view tag_name(std::string_view otherwise) {
  if constexpr (requires { std::string_view(Tag::name); }) return Tag::name;
  else return otherwise;
}

namespace detail {

/// Writes how an array is cut: `(data, None, (x, y))`.
constexpr void write_cuts(text_buffer& out, const aval& a, const mesh_value& mesh) {
  int last = a.rank;
  while (last > 0 && a.dims[last - 1].axes == 0) --last;
  out << "(";
  for (int d = 0; d < last; ++d) {
    const int axes = axis_count(a.dims[d].axes);
    out << (d > 0 ? ", " : "") << (axes == 0 ? "None" : axes > 1 ? "(" : "");
    for (int i = 0; i < axes; ++i) out << (i > 0 ? ", " : "") << mesh.name(axis_at(a.dims[d].axes, i));
    if (axes > 1) out << ")";
  }
  out << (last == 1 ? ",)" : ")");
}

/// Paths and specs of all leaves, one behind the other.
template <class T, class Mesh>
struct leaf_texts {
  template <class F>
  static constexpr void each(F f) {
    const T object{};
    visit_paths(object, [&](const member_path& p, const auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      text_buffer spec;
      write_cuts(spec, resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result, Mesh::value);
      f(p.view(), spec.view(), v);
    });
  }
  static constexpr std::size_t size = [] {
    std::size_t total = 0;
    each([&](std::string_view p, std::string_view spec, const auto&) { total += p.size() + spec.size(); });
    return total;
  }();
  static constexpr std::array<char, size + 1> chars = [] {
    std::array<char, size + 1> all{};
    std::size_t at = 0;
    each([&](std::string_view p, std::string_view spec, const auto&) {
      for (const std::string_view part : {p, spec})
        for (const char c : part) all[at++] = c;
    });
    return all;
  }();
};

}  // namespace detail

/// The leaves of a module type over a mesh, a std::array of `leaf`, in the order of construction: paths, kinds, roles,
/// types, bytes, as constants and without memory, whatever the size of the model. `leaves<decltype(model)>` of a bound
/// one.
template <class T, class Mesh = typename T::mesh_type>
inline constexpr auto leaves = [] {
  using texts = detail::leaf_texts<T, Mesh>;
  std::array<leaf, leaf_count<T>()> all{};
  std::size_t next = 0, at = 0;
  texts::each([&](std::string_view p, std::string_view spec, const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    constexpr aval type = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
    const std::string_view chars(texts::chars.data(), texts::size);
    all[next++] = {chars.substr(at, p.size()),
                   tag_name<typename V::variable_kind>("variable"),
                   tag_name<typename V::role>(""),
                   type,
                   chars.substr(at + p.size(), spec.size()),
                   type.bytes(),
                   local_block(type, Mesh::value).bytes()};
    at += p.size() + spec.size();
  });
  return all;
}();

/// Bytes of all variables as whole arrays, or of those a filter lets through; and on each device of the mesh.
template <class T, class Filter = everything, class Mesh = typename T::mesh_type>
constexpr std::int64_t tree_bytes() {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < leaves<T, Mesh>.size(); ++i)
    if (selected<T, Filter>[i]) total += leaves<T, Mesh>[i].bytes;
  return total;
}
template <class T, class Filter = everything, class Mesh = typename T::mesh_type>
constexpr std::int64_t tree_bytes_per_device() {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < leaves<T, Mesh>.size(); ++i)
    if (selected<T, Filter>[i]) total += leaves<T, Mesh>[i].bytes_per_device;
  return total;
}

/// The leaves of a model over a mesh, without memory or initialisation: `eval_shape<model, cluster>()`. Source:
/// flax.nnx.eval_shape.
template <class Model, class Mesh = mesh<>>
constexpr const auto& eval_shape() {
  return leaves<Model, Mesh>;
}

/// How the leaf at a path is cut, `get_partition_spec<model, cluster>("up.kernel") == "(None, model)"`. A path without
/// a leaf raises value_error, in a constant expression it does not compile. Source: flax.nnx.get_partition_spec.
template <class Model, class Mesh = mesh<>>
constexpr std::string_view get_partition_spec(std::string_view path_of_leaf) {
  for (const leaf& one : leaves<Model, Mesh>)
    if (one.path == path_of_leaf) return one.spec;
  throw value_error("get_partition_spec: there is no leaf " + std::string(path_of_leaf));
}

}  // namespace tessera::nn
