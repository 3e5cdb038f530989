// SPDX-License-Identifier: Apache-2.0
// State of optimisers: for each variable that is updated an array of its own type, or of one derived from it, or none;
// float32 where variables have 16 bits.
#pragma once

#include <tessera/graph/paths.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/variable.hpp>

#include <array>
#include <string_view>
#include <utility>

namespace tessera::optim {

/// What a mask is asked about: a variable's path within its model, element type, that of its master copy, extents and,
/// if it has one, role.
struct leaf {
  std::string_view path{};
  std::string_view role{};
  dtype type = dtype::f32;
  dtype master = dtype::f32;
  int rank = 0;
  std::array<std::int64_t, max_rank> extents{};

  /// The last name of the path.
  constexpr std::string_view name() const { return path.substr(path.rfind('.') + 1); }
};

/// The variables of kind Wrt for which `Mask{}(leaf)` is true. Stands where the kind stands.
template <class Wrt, class Mask>
struct selected {};

/// Kind Wrt with its state cut over a mesh axis as well, where its variables are not.
template <class Wrt, class Mesh, text Axis>
struct spread {};

/// The type of an array of a state.
template <dtype D, class Shape, class Spec>
struct array_of {
  static constexpr dtype element = D;
  using shape_type = Shape;
  using spec_type = Spec;
};
template <class V>
using array_like = array_of<V::element, typename V::shape_type, typename V::spec_type>;

/// What a variable is updated in: the type of its master copy, float32 at least.
template <class V>
inline constexpr dtype update_type = V::master == V::element ? accumulator(V::element) : V::master;

/// A variable of a state whose memory and node live in a variable of the model's type.
template <class Array, bool Const>
struct state_variable : Array {
  using variable_kind = nn::optimizer_state;
  template <class T>
  using held = std::conditional_t<Const, const T&, T&>;

  held<trace_handle> handle;
  held<runtime::storage_ptr> data;
};

namespace detail {

template <class Spec, std::size_t I>
struct cut_at : std::type_identity<cut<>> {};
template <class First, class... Rest, std::size_t I>
requires(I > 0 && is_cut<First>) struct cut_at<partition_spec<First, Rest...>, I>
    : cut_at<partition_spec<Rest...>, I - 1> {
};
template <class First, class... Rest>
requires(is_cut<First>) struct cut_at<partition_spec<First, Rest...>, 0> : std::type_identity<First> {
};

/// The cut of a dimension, further cut along an axis.
template <class Cut, text Axis>
struct cut_further;
template <text... Names, text Axis>
struct cut_further<cut<Names...>, Axis> : std::type_identity<cut<Names..., Axis>> {};

template <class Spec, text Axis>
inline constexpr bool names_axis = false;
template <text Axis, class... Parts>
inline constexpr bool names_axis<partition_spec<Parts...>, Axis> = (names_axis<Parts, Axis> || ...);
template <text Axis, text... Names>
inline constexpr bool names_axis<cut<Names...>, Axis> = ((Names.view() == Axis.view()) || ...);
template <text Axis, axis_use Use, text... Names>
inline constexpr bool names_axis<marked<Use, Names...>, Axis> = ((Names.view() == Axis.view()) || ...);

/// An array cut along Axis as well, in the first dimension whose blocks can be divided; as it was if there is none or
/// if the axis cuts it already.
template <class V, class Mesh, text Axis>
struct spread_layout {
  static constexpr int dimension = [] {
    const aval whole = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
    const int axis = Mesh::value.find(Axis.view());
    if (axis < 0 || names_axis<typename V::spec_type, Axis>) return -1;
    const aval block = local_block(whole, Mesh::value);
    for (int d = 0; d < whole.rank; ++d)
      if (block.dims[d].extent >= Mesh::value.size(axis) && block.dims[d].extent % Mesh::value.size(axis) == 0)
        return d;
    return -1;
  }();

  template <std::size_t I, class Cut>
  using entry = typename std::conditional_t<static_cast<int>(I) == dimension, cut_further<Cut, Axis>,
                                            std::type_identity<Cut>>::type;
  template <std::size_t... I>
  static auto spec(std::index_sequence<I...>)
      -> strip_uncut<partition_spec<>, entry<I, typename cut_at<typename V::spec_type, I>::type>...>;

  using type = array_of<V::element, typename V::shape_type,
                        typename decltype(spec(std::make_index_sequence<V::shape_type::rank>{}))::type>;
};

/// Calls f(variable) for the variables that a state is about.
template <class Wrt>
struct leaves {
  template <class T, class F>
  static constexpr void visit(T& object, F&& f) {
    nn::visit_kind<Wrt>(object, f);
  }
  template <class V>
  using layout = array_of<update_type<V>, typename V::shape_type, typename V::spec_type>;

  /// Calls f(path, variable) for the same variables.
  template <class T, class F>
  static constexpr void visit_paths(T& object, member_path& path, F&& f) {
    tessera::visit_paths(object, path, [&](const member_path& p, auto& v) {
      nn::visit_kind<Wrt>(v, [&](auto& of_kind) { f(p, of_kind); });
    });
  }
};

/// Calls f(leaf) for the variables of Model that a state is about.
template <class Model, class Wrt, class F>
constexpr void describe_leaves(F&& f) {
  const Model object{};
  member_path path;
  leaves<Wrt>::visit_paths(object, path, [&](const member_path& at, const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    leaf found{.path = at.view(), .type = V::element, .master = V::master, .rank = V::shape_type::rank};
    for (std::size_t d = 0; d < V::shape_type::extents.size(); ++d) found.extents[d] = V::shape_type::extents[d];
    if constexpr (requires { V::role::name; }) found.role = V::role::name;
    f(found);
  });
}

template <class Model, class Wrt>
constexpr std::size_t count_leaves() {
  std::size_t count = 0;
  describe_leaves<Model, Wrt>([&](const leaf&) { ++count; });
  return count;
}

/// Whether each of the variables of kind Wrt is chosen by a mask.
template <class Model, class Wrt, class Mask>
struct chosen {
  static constexpr std::size_t size = count_leaves<Model, Wrt>();
  static constexpr std::array<bool, size> flags = [] {
    std::array<bool, size> result{};
    std::size_t next = 0;
    describe_leaves<Model, Wrt>([&](const leaf& l) { result[next++] = Mask{}(l); });
    return result;
  }();
  static constexpr std::size_t count = [] {
    std::size_t n = 0;
    for (const bool b : flags) n += b ? 1U : 0U;
    return n;
  }();
};

template <class Wrt, class Mask>
struct leaves<selected<Wrt, Mask>> {
  template <class T, class F>
  static constexpr void visit(T& object, F&& f) {
    constexpr auto& flags = chosen<std::remove_const_t<T>, Wrt, Mask>::flags;
    std::size_t next = 0;
    leaves<Wrt>::visit(object, [&](auto& v) {
      if (flags[next++]) f(v);
    });
  }
  template <class V>
  using layout = typename leaves<Wrt>::template layout<V>;

  template <class T, class F>
  static constexpr void visit_paths(T& object, member_path& path, F&& f) {
    constexpr auto& flags = chosen<std::remove_const_t<T>, Wrt, Mask>::flags;
    std::size_t next = 0;
    leaves<Wrt>::visit_paths(object, path, [&](const member_path& p, auto& v) {
      if (flags[next++]) f(p, v);
    });
  }
};

/// Kind Wrt spread over an axis: a state's arrays have one cut more.
template <class Wrt, class Mesh, text Axis>
struct leaves<spread<Wrt, Mesh, Axis>> : leaves<Wrt> {
  template <class V>
  using layout = typename spread_layout<typename leaves<Wrt>::template layout<V>, Mesh, Axis>::type;
};

}  // namespace detail

/// The dimensions Keep of an array, in this order, each cut as it was.
template <class V, class Keep>
struct kept_dims;
template <class V, std::size_t... Keep>
struct kept_dims<V, std::index_sequence<Keep...>> {
  using shape_type = shape<V::shape_type::extents[Keep]...>;
  using spec_type =
      typename strip_uncut<partition_spec<>, typename detail::cut_at<typename V::spec_type, Keep>::type...>::type;
  using type = array_of<V::element, shape_type, spec_type>;
};

/// All dimensions but number Dropped.
template <class V, std::size_t Dropped>
struct without_dim {
  template <std::size_t... I>
  static auto places(std::index_sequence<I...>) -> std::index_sequence<(I < Dropped ? I : I + 1)...>;
  using type = typename kept_dims<V, decltype(places(std::make_index_sequence<V::shape_type::rank - 1>{}))>::type;
};

/// A state's arrays are as the variables are, those of 16-bit variables float32.
struct same_type {
  template <class V>
  using apply = array_like<V>;
};

/// The same of another element type.
template <dtype D>
struct of_dtype {
  template <class V>
  using apply = array_of<D, typename V::shape_type, typename V::spec_type>;
};

/// One number a variable.
struct one_number {
  template <class V>
  using apply = array_of<V::element, shape<>, P<>>;
};

/// One array for each variable of kind Wrt of Model, of the type that Map makes of its type, cut as it is; none where
/// that is void. What the model holds besides costs no memory for arrays.
template <class Model, class Wrt, class Map = same_type>
struct like {
  Model arrays;

  constexpr void visit_variables(auto&& f) { visit_arrays(arrays, f); }
  constexpr void visit_variables(auto&& f) const { visit_arrays(arrays, f); }

  constexpr void visit_paths(member_path& path, auto&& f) const {
    detail::leaves<Wrt>::visit_paths(arrays, path, [&](const member_path& at, const auto& v) {
      derive<true>(v, [&](auto& derived) { f(at, derived); });
    });
  }

 private:
  /// Calls f with the array that belongs to a variable, if there is one.
  template <bool Const, class F>
  static constexpr void derive(auto& v, F&& f) {
    using V = std::remove_cvref_t<decltype(v)>;
    using Array = typename Map::template apply<typename detail::leaves<Wrt>::template layout<V>>;
    if constexpr (std::is_void_v<Array>) {
    } else if constexpr (std::same_as<Array, array_like<V>>) {
      f(v);
    } else {
      state_variable<Array, Const> derived{{}, v.handle, v.data};
      f(derived);
    }
  }

  template <class Arrays>
  static constexpr void visit_arrays(Arrays& from, auto& f) {
    detail::leaves<Wrt>::visit(from, [&](auto& v) { derive<std::is_const_v<Arrays>>(v, f); });
  }
};

/// State of a transformation that has none.
struct empty_state {
  TESSERA_MODULE(empty_state)
};

/// A mask: variables that are updated in a copy of another element type.
struct has_master {
  constexpr bool operator()(const leaf& l) const { return l.master != l.type; }
};

/// How many variables of kind Wrt are updated in another type than they have, and how many in a copy of one.
template <class Model, class Wrt>
struct converted_count {
  std::size_t converted = 0, copied = 0;

  constexpr converted_count() {
    const Model object{};
    detail::leaves<Wrt>::visit(object, [this](const auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      converted += update_type<V> == V::element ? 0U : 1U;
      copied += V::master == V::element ? 0U : 1U;
    });
  }
};

/// Copies of the variables of kind Wrt that are updated in another type than they have.
template <class Model, class Wrt>
using masters_of =
    std::conditional_t<(converted_count<Model, Wrt>().copied > 0), like<Model, selected<Wrt, has_master>>, empty_state>;

}  // namespace tessera::optim
