// SPDX-License-Identifier: Apache-2.0
// How every operation on traced arrays is made: types go through its rule, the value becomes a node.
#pragma once

#include <tessera/core/error.hpp>
#include <tessera/graph/expr.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/sharding/manual.hpp>

#include <array>
#include <cstdint>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera {

/// Where an operation is called: what those take as their last argument whose results are worth finding again.
using call_site = std::source_location;

}  // namespace tessera

namespace tessera::ops {

using graph::op;

/// The mesh an operand brings along.
template <class T>
struct mesh_of : std::type_identity<open_mesh<>> {};
template <Expr T>
struct mesh_of<T> : std::type_identity<typename std::remove_cvref_t<T>::mesh_type> {};
template <Variable T>
struct mesh_of<T> : open_mesh_of<typename std::remove_cvref_t<T>::spec_type> {};

template <class... Xs>
using common_mesh = typename join_meshes<typename mesh_of<Xs>::type...>::type;

template <class... Xs>
constexpr bool one_mesh() {
  using M = common_mesh<Xs...>;
  return (meshes_agree<typename mesh_of<Xs>::type, M> && ...);
}

/// Refuses an array that lies along axes which are of another kind in the region around it than where it comes from:
/// the body of a shard_map sees blocks of its arguments alone, that of auto_axes arguments whose types do not name the
/// axes.
constexpr ruling captured(const aval& a, const mesh_value& own, const mesh_value& inside) {
  const auto lies = static_cast<axis_set>(a.cut() | a.unreduced | a.reduced);
  for (int i = 0; i < inside.rank; ++i) {
    if ((lies & bit_of(i)) == 0 || inside.kind(i) == axis_kind::explicit_) continue;
    if (const int there = own.find(inside.name(i)); there >= 0 && own.kind(there) == inside.kind(i)) continue;
    return refuse(inside.kind(i) == axis_kind::manual ? message::shard_map_captured : message::auto_axes_captured, -1,
                  inside.name(i));
  }
  return {a};
}

/// A variable of a module as a body has it whose mesh is `inside`: the block that one device holds.
constexpr ruling block_of_variable(const aval& whole, const mesh_value& outside, const mesh_value& inside) {
  const axis_set manual = inside.axes_of(axis_kind::manual);
  const ruling block = sharding::to_local(whole, manual, inside);
  if (!block.ok()) return block;
  aval rest = block.result;
  rest.unreduced = static_cast<axis_set>(rest.unreduced & ~manual);
  rest.reduced = static_cast<axis_set>(rest.reduced & ~manual);
  const ruling held = captured(rest, outside, inside);
  return held.ok() ? block : held;
}

/// The abstract value of an operand over mesh M, or why it has none there.
template <class T, class M, dtype Peer>
constexpr ruling operand_on() {
  if constexpr (Expr<T>) {
    using Own = typename T::mesh_type;
    for (int axis = 0; axis < Own::value.rank; ++axis)
      if (((T::type.unreduced | T::type.reduced) & bit_of(axis)) && M::value.find(Own::value.name(axis)) < 0)
        return refuse(message::spec_unknown_axis, -1, Own::value.name(axis));
    for (int d = 0; d < T::type.rank; ++d)
      for (int i = 0; i < axis_count(T::type.dims[d].axes); ++i)
        if (const auto name = Own::value.name(axis_at(T::type.dims[d].axes, i)); M::value.find(name) < 0)
          return refuse(message::spec_unknown_axis, d, name);
    const aval seen = rebind(T::type, Own::value, M::value);
    if (const ruling held = captured(seen, Own::value, M::value); !held.ok()) return held;
    return check_cuts(seen, M::value);
  } else if constexpr (Variable<T>) {
    using Outside = typename mesh_around<M>::type;
    const ruling seen = resolve<T::element, typename T::shape_type, typename T::spec_type, Outside>();
    if constexpr (std::is_same_v<M, Outside>) return seen;
    else return seen.ok() ? block_of_variable(seen.result, Outside::value, M::value) : seen;
  } else if constexpr (std::is_same_v<T, bool>) {
    return {scalar_aval(dtype::bool_)};
  } else {
    return {scalar_aval(std::is_floating_point_v<T> && !is_floating(Peer) ? dtype::f32 : Peer)};
  }
}

template <class T>
constexpr dtype element_of() {
  if constexpr (Expr<T>) return T::type.type;
  else return T::element;
}

/// The element type that a number takes on: that of the first array beside it.
template <class First, class... Rest>
constexpr dtype peer_element() {
  if constexpr (ArrayLike<First>) return element_of<First>();
  else return peer_element<Rest...>();
}

template <class M, class... Xs>
constexpr std::array<aval, sizeof...(Xs)> operands_on() {
  return {operand_on<Xs, M, peer_element<Xs...>()>().result...};
}

/// Whether a rule says itself over which axes its result varies: collectives change that.
template <class Rule>
concept RulesVariation = requires {
  Rule::rules_variation;
};

/// A rule that looks at the mesh alone: what it makes is the same on all devices.
template <auto Rule>
struct rule_of_mesh {
  static constexpr bool rules_variation = true;
  constexpr ruling operator()(std::span<const aval> x, const mesh_value& mesh) const { return Rule(x, mesh); }
};
template <auto Rule>
inline constexpr rule_of_mesh<Rule> of_mesh{};

/// What a rule says of operands that vary over different axes: inside shard_map those that lack an axis are cast, and
/// the result varies over all of them.
template <auto Rule>
constexpr ruling rule_together(std::span<const aval> x, const mesh_value& mesh) {
  axis_set varying = 0;
  for (const aval& a : x) varying = static_cast<axis_set>(varying | a.varying);
  if (RulesVariation<decltype(Rule)> || varying == 0) return Rule(x, mesh);
  std::vector<aval> cast(x.begin(), x.end());
  for (aval& a : cast) a.varying = varying, a.reduced = static_cast<axis_set>(a.reduced & ~varying);
  ruling ruled = Rule(std::span<const aval>(cast), mesh);
  ruled.result.varying = static_cast<axis_set>(ruled.result.varying | varying);
  return ruled;
}

/// An operation's rule knows of unreduced and reduced operands and results only if it says so. `handles_marks{rule}`:
/// the rule decides, as one of sharding/elementwise.hpp does. `keeps_reduced{rule}`: the rule sees reduced operands,
/// and passes their axes on; unreduced ones are refused before. Any other rule sees neither, and may give neither.
template <class Rule>
struct handles_marks : Rule {
  using Rule::operator();
};
template <class Rule>
handles_marks(Rule) -> handles_marks<Rule>;
template <class Rule>
struct keeps_reduced : Rule {
  using Rule::operator();
};
template <class Rule>
keeps_reduced(Rule) -> keeps_reduced<Rule>;

template <class Rule>
inline constexpr bool knows_unreduced = false;
template <class Rule>
inline constexpr bool knows_unreduced<handles_marks<Rule>> = true;
template <RulesVariation Rule>
inline constexpr bool knows_unreduced<Rule> = true;
template <class Rule>
inline constexpr bool knows_reduced = knows_unreduced<Rule>;
template <class Rule>
inline constexpr bool knows_reduced<keeps_reduced<Rule>> = true;

/// What the operation's rule says of these operands over their common mesh.
template <auto Rule, class M, class... Xs>
constexpr ruling rule_on() {
  ruling first{};
  const auto check = [&](const ruling& r) {
    if (first.ok() && !r.ok()) first = r;
  };
  (check(operand_on<Xs, M, peer_element<Xs...>()>()), ...);
  if (!first.ok()) return first;
  using rule_type = std::remove_cv_t<decltype(Rule)>;
  const auto operands = operands_on<M, Xs...>();
  for (const aval& a : operands) {
    if (a.unreduced != 0 && !knows_unreduced<rule_type>) return refuse(message::unreduced_operand);
    if (a.reduced != 0 && !knows_reduced<rule_type>) return refuse(message::reduced_operand);
  }
  const ruling ruled = rule_together<Rule>(std::span<const aval>(operands), M::value);
  const bool unforeseen = (ruled.result.unreduced != 0 && !knows_unreduced<rule_type>) ||
                          (ruled.result.reduced != 0 && !knows_reduced<rule_type>);
  return ruled.ok() && unforeseen ? ruling{ruled.result, message::unreduced_result} : ruled;
}

template <class M, class X, class... Rest>
constexpr void write_operands(text_buffer& out) {
  if constexpr (Expr<X> || RuntimeArray<X>) write_aval(out, X::type, X::mesh_type::value);
  else if constexpr (Variable<X>) write_aval(out, operand_on<X, M, dtype::f32>().result, M::value);
  else out << "a number";
  if constexpr (sizeof...(Rest) > 0) {
    out << " and ";
    write_operands<M, Rest...>(out);
  }
}

/// Whether a message is about a dimension as the user counts it.
constexpr bool names_dimension(message m) {
  return m == message::reduce_axis || m == message::reduce_axis_twice || m == message::softmax_axis;
}

/// `matmul of float32[8@x,4] and float32[4,2] to float32[8@x,2], dimension 0, axis x of size 2`.
template <text Name, auto Rule, class M, class... Xs>
constexpr text_buffer details() {
  text_buffer out;
  out << Name.view() << " of ";
  write_operands<M, Xs...>(out);
  const ruling ruled = rule_on<Rule, M, Xs...>();
  if (!(ruled.result == aval{})) out << " to ", write_aval(out, ruled.result, M::value);
  if (ruled.dimension >= 0 || names_dimension(ruled.failure)) out << ", dimension " << ruled.dimension;
  if (!ruled.axis.empty()) {
    out << ", axis " << ruled.axis;
    if (const int axis = M::value.find(ruled.axis); axis >= 0 && M::value.size(axis) > 0)
      out << " of size " << M::value.size(axis);
  }
  return out;
}

/// The graph that operands belong to.
constexpr graph::graph* owner_of() { return nullptr; }
template <class X, class... Rest>
constexpr graph::graph* owner_of(const X& x, const Rest&... rest) {
  if constexpr (ArrayLike<X>) {
    if (x.handle.owner != nullptr) return x.handle.owner;
  }
  return owner_of(rest...);
}

/// What stands for an array that has no node here, which is reported when the trace ends. It is a variable that is no
/// member of the module that was passed to the step, or one that TESSERA_MODULE leaves out, or what was computed from
/// such variables alone; or a value of a body that is used outside.
template <class X>
constexpr graph::value missing_value(graph::graph* owner, message why) {
  const aval type = operand_on<X, typename mesh_of<X>::type, dtype::f32>().result;
  owner->outermost().report({why, -1, type});
  return {owner, owner->add_parameter(type)};
}

/// The node of an operand; a number becomes a constant of the peers' element type.
template <class X>
constexpr graph::value operand_value(graph::graph* owner, const X& x, dtype peer) {
  if constexpr (ArrayLike<X>) {
    if (x.handle.owner == nullptr) return missing_value<X>(owner, message::module_unnamed);
    if (!owner->sees(x.handle.owner)) return missing_value<X>(owner, message::scan_escape);
    return {owner, owner->import_node(x.handle.owner, x.handle.id)};
  } else {
    return graph::constant(owner, std::is_same_v<X, bool> ? dtype::bool_ : peer, static_cast<double>(x));
  }
}

/// Notes a variable that a body uses without being given it: it stands for the whole array then, not for a block.
template <class X, class M>
constexpr void check_block(graph::graph* owner, const graph::value& v) {
  if constexpr (Variable<X> && !M::open) {
    if (M::value.axes_of(axis_kind::manual) == 0) return;
    const aval block = rebind(operand_on<X, M, dtype::f32>().result, M::value, owner->mesh);
    if (!v.type().same_shape(block) || !v.type().same_cuts(block))
      owner->outermost().report({message::shard_map_captured, -1, v.type()});
  }
}

/// What is wrong with operands of a rule, most basic first.
template <auto Rule, class... Xs>
inline constexpr message fault = [] {
  if constexpr ((RuntimeArray<Xs> || ...)) return message::outside_jit;
  else if constexpr (!one_mesh<Xs...>()) return message::mesh_mismatch;
  else return rule_on<Rule, common_mesh<Xs...>, Xs...>().failure;
}();

/// `add of float32[8@x] and float32[8], mesh x=2, mesh x=4`, or what details() says.
template <text Name, auto Rule, class... Xs>
constexpr text_buffer fault_details() {
  using M = common_mesh<Xs...>;
  constexpr bool outside = (RuntimeArray<Xs> || ...);
  if constexpr (!outside && one_mesh<Xs...>()) return details<Name, Rule, M, Xs...>();
  text_buffer out;
  out << Name.view() << " of ";
  write_operands<M, Xs...>(out);
  if (outside) return out;
  ((out << ", mesh ", write_mesh(out, mesh_of<Xs>::type::value)), ...);
  return out;
}

/// The types that operands of a rule give: an array's, a poison where an operand is one, or the refusal.
template <text Name, auto Rule, class... Xs>
struct application {
  using M = common_mesh<Xs...>;
  static constexpr message failure = fault<Rule, Xs...>;

  static constexpr auto deduce() {
    if constexpr (failure == message::none) return std::type_identity<expr<rule_on<Rule, M, Xs...>().result, M>>{};
    else return std::type_identity<refusal<failure, &fault_details<Name, Rule, Xs...>>>{};
  }
  using type = typename decltype(deduce())::type;
};
template <text Name, auto Rule, class... Xs>
requires(Poison<Xs> || ...) struct application<Name, Rule, Xs...> : std::type_identity<poison> {
};

template <text Name, auto Rule, class... Xs>
using result_of = typename application<Name, Rule, Xs...>::type;

/// Checks first, then writes: `write(graph, operand values, result type) -> value`. Where the rule refuses, the
/// declared result says the sentence, at the call; it is a poison, as is the result of an operation on a poison.
template <text Name, auto Rule, class Write, class... Xs>
requires(!Poison<result_of<Name, Rule, Xs...>>) constexpr auto apply(Write write, const Xs&... xs) {
  using result = result_of<Name, Rule, Xs...>;
  constexpr dtype peer = peer_element<Xs...>();
  graph::graph* owner = owner_of(xs...);
  if (owner == nullptr) {
    if (std::is_constant_evaluated()) return result{};
    throw value_error("tessera: a traced operation was called outside jit; call it inside a step function");
  }
  owner = &owner->active();
  const aval type = rebind(result::type, result::mesh_type::value, owner->mesh);
  std::array<graph::value, sizeof...(Xs)> operands{operand_value(owner, xs, peer)...};
  std::size_t next = 0;
  (check_block<Xs, typename result::mesh_type>(owner, operands[next++]), ...);
  if constexpr (!RulesVariation<decltype(Rule)>)
    for (graph::value& v : operands) v = graph::vary(v, type.varying);
  return result{{owner, write(std::as_const(operands), type).id}};
}
template <text Name, auto Rule, class Write, class... Xs>
requires(Poison<Xs> || ...) constexpr poison apply(Write, const Xs&...) { return {}; }

/// Not constexpr: such a function would be instantiated, and its result named, before the call is.
template <text Name, auto Rule, class Write, class... Xs>
requires(!(Poison<Xs> || ...) &&
         Poison<result_of<Name, Rule, Xs...>>) result_of<Name, Rule, Xs...> apply(Write, const Xs&...) {
  return {};
}

/// Notes in the nodes from number `first` on where the operation was called that they belong to.
constexpr void note_line(graph::graph& g, int first, const call_site& where) {
  graph::list<const char*>& files = g.outermost().files;
  std::size_t file = 0;
  while (file < files.size() && std::string_view(files[file]) != where.file_name()) ++file;
  if (file == files.size()) files.push_back(where.file_name());
  for (int i = first; i < g.size(); ++i) g.at(i).written = {where.line(), file};
}

/// The write step of an operation that knows where it was called.
template <class Write>
struct written_at {
  call_site where;
  Write write;

  template <std::size_t N>
  constexpr graph::value operator()(const std::array<graph::value, N>& x, const aval& type) const {
    const int first = x[0].owner->size();
    const graph::value made = write(x, type);
    note_line(*x[0].owner, first, where);
    return made;
  }
};
template <class Write>
written_at(call_site, Write) -> written_at<Write>;

/// The write step of an operation whose node needs nothing but its operands, padded to the rank of the result.
template <op Code>
struct write_plain {
  template <std::size_t N>
  constexpr graph::value operator()(const std::array<graph::value, N>& x, const aval& type) const {
    graph::node n;
    n.code = Code;
    n.type = type;
    for (std::size_t i = 0; i < N; ++i) n.operands[i] = graph::pad_rank(x[i], type.rank).id;
    return {x[0].owner, x[0].owner->add(n)};
  }
};

/// The write step that adds one attribute.
template <op Code>
struct write_with_attribute {
  std::uint64_t attribute;

  constexpr graph::value operator()(const std::array<graph::value, 1>& x, const aval& type) const {
    const graph::value result = graph::write(x[0].owner, Code, type, {x[0].id});
    x[0].owner->at(result.id).attribute[0] = attribute;
    return result;
  }
};

/// The spec of an `out_sharding<...>` argument over a mesh.
template <class Spec>
struct chosen_spec {
  spec_value value;
  constexpr explicit chosen_spec(const mesh_value& mesh) : value(read_spec<Spec>(mesh)) {}
  constexpr const spec_value* get() const { return &value; }
};
/// No `out_sharding`: the rule decides.
template <>
struct chosen_spec<void> {
  constexpr explicit chosen_spec(const mesh_value&) {}
  constexpr const spec_value* get() const { return nullptr; }
};

}  // namespace tessera::ops
