// SPDX-License-Identifier: Apache-2.0
// What the gradient of a loss keeps between its forward and its backward part.
#pragma once

#include <tessera/analysis/lowered.hpp>
#include <tessera/graph/paths.hpp>
#include <tessera/graph/worklist.hpp>
#include <tessera/transform/grad_control.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace tessera {

namespace analysis {

/// What a line of source says of a value: it is made in it or, by an operation that cannot tell its line, somewhere
/// before the line of an operation that can or, failing that, behind one.
enum class line_relation : std::uint8_t { unknown, at, before, after };

/// A value that the backward part reads and does not compute.
struct saved_residual {
  aval type{};
  std::int64_t bytes = 0;  ///< on one device
  int argument = -1;  ///< of an argument: which array it is, counted as `arg0` in a lowered program's text; else -1
  graph::op made_by = graph::op::parameter;  ///< the operation that makes it; parameter: what a loop carries
  graph::value_name name{};                  ///< what checkpoint_name calls it
  graph::control_kind body = graph::control_kind::call;  ///< in whose body it is made; call: in none
  std::int64_t trips = 0;                                ///< of a scan that keeps one of each trip: how many
  bool offloaded = false;                                ///< whether it waits in host memory
  line_relation where = line_relation::unknown;          ///< how the next line has to do with it
  int line = 0;
  const char* file = nullptr;

  constexpr bool in_body() const { return body != graph::control_kind::call; }
  constexpr bool is_argument() const { return argument >= 0; }
};

/// The nodes that are read on the way to `outputs`, up to those that `given` marks. Of a loop or a branch the carries
/// and what its bodies read.
constexpr graph::list<char> read_for(const graph::graph& g, const graph::list<int>& outputs,
                                     const graph::list<char>& given) {
  graph::worklist unvisited(graph::list<char>(g.nodes.size(), 0));
  for (int o : outputs) unvisited.push(o);
  while (!unvisited.empty()) {
    const int node = unvisited.pop();
    if (given[static_cast<std::size_t>(node)]) continue;
    if (g.at(node).code != graph::op::control) {
      graph::for_each_read(g, node, [&](int read) { unvisited.push(read); });
      continue;
    }
    const graph::control c = graph::control_of(g.at(node));
    const graph::list<int> arguments = graph::arguments_of(g, node);
    graph::list<char> needed(arguments.size(), 0);
    for (int i = 0; i < c.leading() + c.carries; ++i) needed[static_cast<std::size_t>(i)] = 1;
    for (int b = 0; b < c.bodies(); ++b) {
      const graph::graph& body = g.bodies[static_cast<std::size_t>(c.body + b)];
      graph::list<int> made;
      for (const graph::output& o : body.outputs) made.push_back(o.node);
      const graph::list<char> inside = read_for(body, made, graph::list<char>(body.nodes.size(), 0));
      for (auto i = static_cast<std::size_t>(c.leading()); i < arguments.size(); ++i)
        if (inside[static_cast<std::size_t>(body.parameters[i - static_cast<std::size_t>(c.leading()) + 1])])
          needed[i] = 1;
    }
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (needed[i]) unvisited.push(arguments[i]);
  }
  return unvisited.seen;
}

/// Finds the line of node `id` in graph or body `g`: its own, or that of the nearest node that has one, later ones
/// first.
constexpr void find_line(saved_residual& r, const graph::graph& g, int id, const graph::list<const char*>& files) {
  int found = id;
  while (found < g.size() && g.at(found).written.line() == 0) ++found;
  if (found == g.size())
    for (found = id; found >= 0 && g.at(found).written.line() == 0;) --found;
  if (found < 0) return;
  r.where = found == id ? line_relation::at : found > id ? line_relation::before : line_relation::after;
  r.line = g.at(found).written.line();
  r.file = files[g.at(found).written.file()];
}

/// What there is to say of node `id`, which is kept.
constexpr saved_residual residual_at(const graph::graph& g, int id) {
  saved_residual r{.type = g.type(id), .bytes = local_block(g.type(id), g.mesh).bytes()};
  transform::described about_it;
  about_it.look_at(g, id);
  r.made_by = about_it.value.code;
  r.name = about_it.name;
  if (r.made_by != graph::op::parameter) find_line(r, *about_it.maker, about_it.node, g.files);
  r.offloaded = transform::lies_on_host(g, id);
  while (g.at(id).code == graph::op::name) id = g.at(id).operands[0];
  if (g.at(id).code == graph::op::result) {
    const graph::control c = graph::control_of(g.at(g.at(id).operands[0]));
    r.body = c.kind;
    const bool stacked = static_cast<int>(g.at(id).attribute[0]) >= c.carries;
    if (c.kind == graph::control_kind::scan && stacked) r.trips = c.trips;
  }
  return r;
}

/// The residuals of the gradient of node `loss` with respect to the nodes `wrt`: arguments in order, then values in
/// order of computation. What could not be differentiated is noted in `fault`.
constexpr graph::list<saved_residual> find_residuals(graph::graph g, int loss, const graph::list<int>& wrt,
                                                     graph::trace_fault& fault) {
  const graph::list<int> arguments = g.parameters;
  const transform::seed one{loss, g.add_parameter(cotangent_type(g.type(loss)))};
  const graph::list<int> made = transform::gradients(g, std::span(&one, 1), wrt);
  fault = transform::first_fault(g);
  if (fault.what != message::none) return {};

  const transform::partial_evaluation parts(g, {}, {one.cotangent}, arguments);
  graph::list<char> given = parts.available;
  const graph::list<int> saved = parts.saved_for(made);
  for (int s : saved) given[static_cast<std::size_t>(s)] = 1;
  const graph::list<char> read = read_for(g, made, given);

  graph::list<saved_residual> found;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!read[static_cast<std::size_t>(arguments[i])]) continue;
    found.push_back(residual_at(g, arguments[i]));
    found.back().argument = static_cast<int>(i);
  }
  for (int s : saved)
    if (read[static_cast<std::size_t>(s)]) found.push_back(residual_at(g, s));
  return found;
}

/// A loss whose arguments may be tuples of arrays, as a step whose arguments are arrays: the arrays side by side.
template <class Arg>
struct ungrouped_argument : std::type_identity<std::tuple<Arg>> {};
template <class... Parts>
struct ungrouped_argument<std::tuple<Parts...>> : std::type_identity<std::tuple<Parts...>> {};
template <class Arg>
using ungrouped_argument_t = typename ungrouped_argument<Arg>::type;

template <const auto& Loss, class... Args>
struct ungrouped {
  using arguments = decltype(std::tuple_cat(std::declval<ungrouped_argument_t<Args>>()...));
  static constexpr std::array<std::size_t, sizeof...(Args)> sizes{std::tuple_size_v<ungrouped_argument_t<Args>>...};

  static constexpr std::size_t start(std::size_t group) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < group; ++i) sum += sizes[i];
    return sum;
  }

  /// Argument number Group of the loss: a tuple of copies, or the very array or module.
  template <std::size_t Group, class Tied>
  static constexpr decltype(auto) group(const Tied& all) {
    using Arg = std::tuple_element_t<Group, std::tuple<Args...>>;
    if constexpr (std::is_same_v<ungrouped_argument_t<Arg>, Arg>) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::tuple(std::get<start(Group) + I>(all)...); }
      (std::make_index_sequence<sizes[Group]>{});
    } else {
      return std::get<start(Group)>(all);
    }
  }

  static constexpr auto call = [](auto&... each) {
    const auto all = std::tie(each...);
    return [&]<std::size_t... G>(std::index_sequence<G...>) {
      std::tuple<decltype(group<G>(all))...> groups{group<G>(all)...};
      return std::apply([](auto&... groups_of) { return Loss(groups_of...); }, groups);
    }
    (std::index_sequence_for<Args...>{});
  };
};

template <class Ungrouped, class Arguments>
struct traced_loss;
template <class Ungrouped, class... Arrays>
struct traced_loss<Ungrouped, std::tuple<Arrays...>>
    : std::type_identity<transform::traced<Ungrouped::call, std::remove_reference_t<Arrays>...>> {};

/// Residuals as a constant.
template <std::size_t Room>
struct residual_list {
  std::array<saved_residual, Room> items{};
  std::size_t size = 0;
  graph::trace_fault fault{};
};

/// The gradient of a traced loss with respect to its first `Leading` arguments.
template <class Traced, std::size_t Leading>
struct residuals_of {
  using mesh_type = typename Traced::mesh_type;

  template <std::size_t Room>
  static constexpr residual_list<Room> find() {
    residual_list<Room> list;
    const graph::graph g = Traced::run();
    list.fault = g.fault;
    if (list.fault.what != message::none) return list;
    graph::list<int> wrt;
    std::size_t next = 0;
    for_each_array([&](std::size_t argument, bool differentiated, std::string_view) {
      if (argument < Leading && differentiated) wrt.push_back(g.parameters[next]);
      ++next;
    });
    const graph::list<saved_residual> found = find_residuals(g, g.outputs[0].node, wrt, list.fault);
    list.size = found.size();
    for (std::size_t i = 0; i < found.size() && i < Room; ++i) list.items[i] = found[i];
    return list;
  }

  /// Calls f(number of the argument, whether a gradient is taken of it, path) for each array, in the order of the
  /// trace.
  template <class F>
  static constexpr void for_each_array(F f) {
    typename Traced::handles handles{};
    std::size_t argument = 0;
    const auto visit = [&](auto& handle) {
      using Handle = std::remove_cvref_t<decltype(handle)>;
      if constexpr (Expr<Handle>) {
        f(argument, is_floating(Handle::type.type), std::string_view{});
      } else {
        visit_paths(handle, [&](const member_path& path, const auto& v) {
          using V = std::remove_cvref_t<decltype(v)>;
          f(argument, std::same_as<typename V::variable_kind, nn::param> && is_floating(V::element), path.view());
        });
      }
      ++argument;
    };
    std::apply([&](auto&... each) { (visit(each), ...); }, handles);
  }

  static constexpr std::size_t guess = 32;
  static constexpr residual_list<guess> roomy = find<guess>();
  static constexpr auto exact() {
    std::array<saved_residual, roomy.size> list{};
    if constexpr (roomy.size > guess) list = find<roomy.size>().items;
    else
      for (std::size_t i = 0; i < roomy.size; ++i) list[i] = roomy.items[i];
    return list;
  }
  static constexpr auto kept = exact();
  static constexpr graph::trace_fault fault = roomy.fault;

  static constexpr text_buffer fault_details() { return fault_text(fault, mesh_type::value); }
};

/// Stands for the residuals of a loss that was refused.
struct no_residuals {
  static constexpr std::array<saved_residual, 0> kept{};
  template <class F>
  static constexpr void for_each_array(F) {}
  using mesh_type = mesh<>;
};

/// Whether some array of the first `Leading` arguments has a gradient.
template <class Traced, std::size_t Leading>
constexpr bool differentiates_something() {
  bool some = false;
  residuals_of<Traced, Leading>::for_each_array([&](std::size_t argument, bool differentiated, std::string_view) {
    some |= argument < Leading && differentiated;
  });
  return some;
}

/// The residuals of a traced loss; the build stops if it has no gradient.
template <class Traced, std::size_t Leading>
constexpr auto choose_residuals() {
  using Loss = std::remove_cvref_t<typename Traced::result_type>;
  if constexpr (Traced::refused) {
    return no_residuals{};
  } else if constexpr (constexpr message refused = transform::loss_fault<Loss>(); refused != message::none) {
    diagnose(report<refused, [] { return transform::role_details<"loss", Loss>(); }>);
    return no_residuals{};
  } else if constexpr (!differentiates_something<Traced, Leading>()) {
    using first = std::tuple_element_t<0, typename Traced::handles>;
    diagnose(report<message::grad_nothing, [] { return transform::role_details<"first argument", first>(); }>);
    return no_residuals{};
  } else {
    using found = residuals_of<Traced, Leading>;
    if constexpr (found::fault.what != message::none) {
      diagnose(report<found::fault.what, &found::fault_details>);
      return no_residuals{};
    } else {
      warn_of_missing_name<exact_text<&missing_name_of_trace<Traced>>()>();
      return found{};
    }
  }
}

template <const auto& Loss, class First, class... Rest>
constexpr auto residuals_of_loss() {
  using loss = ungrouped<Loss, First, Rest...>;
  using traced = typename traced_loss<loss, typename loss::arguments>::type;
  return choose_residuals<traced, std::tuple_size_v<ungrouped_argument_t<First>>>();
}
template <const auto& Loss, class... Args>
using residuals = decltype(residuals_of_loss<Loss, std::remove_reference_t<Args>...>());

/// `f32[16@data,64]`.
inline std::string short_type(const aval& type, const mesh_value& mesh) {
  constexpr std::string_view names[] = {"f32", "f64", "i32", "u32", "bool", "bf16", "f16"};
  text_buffer whole;
  write_aval(whole, type, mesh);
  return std::string(names[static_cast<int>(type.type)]) + std::string(whole.view().substr(whole.view().find('[')));
}

/// `output of scan: dot named 'pre_act'`.
inline std::string origin_text(const saved_residual& r) {
  std::string text = "output of ";
  if (r.in_body()) text += r.body == graph::control_kind::scan ? "scan: " : "cond: ";
  text += r.made_by == graph::op::parameter ? "carry" : std::string(about(r.made_by).name);
  if (r.name.size > 0) text.append(" named '").append(r.name.view()).append("'");
  if (r.offloaded) text.append(", offloaded");
  return text;
}

/// ` at model.hpp:42`, ` before model.hpp:42`, or nothing.
inline std::string line_text(const saved_residual& r) {
  if (r.where == line_relation::unknown) return {};
  constexpr std::string_view relations[] = {"", " at ", " before ", " after "};
  const std::string_view path = r.file;
  std::string text(relations[static_cast<int>(r.where)]);
  return text.append(path.substr(path.find_last_of('/') + 1)).append(":").append(std::to_string(r.line));
}

}  // namespace analysis

using analysis::line_relation;
using analysis::saved_residual;

/// `saved_residuals<loss, decltype(model), decltype(x)>()`: what the gradient of loss(model, x) with respect to its
/// first argument (a module, an array or a tuple of arrays; see value_and_grad) keeps between its forward and its
/// backward part, as a constant array: arguments that the backward part reads, then values that the forward part makes.
/// By the rule that loops and checkpoints follow: what is cheap to compute again from what is kept anyway is not kept,
/// and constants never are. What is kept of the trips of a scan is one residual with a leading dimension. The arena of
/// a program that takes the gradient holds these values, if they do not lie in its results, and what else is alive at
/// the peak. Source: jax.ad_checkpoint.saved_residuals.
template <const auto& Loss, class... Args>
constexpr const auto& saved_residuals() {
  return analysis::residuals<Loss, Args...>::kept;
}

/// One line a residual: its type, and `from the argument w1`, `output of dot`, `output of dot named 'pre_act'`, or of
/// what a loop keeps `output of scan: tanh`, `output of scan: carry`; then, if `lines`, where it is made: ` at
/// model.hpp:42`, or ` before` or ` after` the nearest line that is known. Arrays are called x0, x1, ... by their place
/// among the arguments (a tuple counts as its parts), variables by their path in the module.
template <const auto& Loss, class... Args>
std::string saved_residuals_text(bool lines = true) {
  using found = analysis::residuals<Loss, Args...>;
  std::vector<std::string> names;
  found::for_each_array([&](std::size_t argument, bool, std::string_view path) {
    const std::string number = "x" + std::to_string(argument);
    names.push_back(path.empty() ? number : argument == 0 ? std::string(path) : number + "." + std::string(path));
  });
  std::string text;
  for (const saved_residual& r : found::kept) {
    text.append(analysis::short_type(r.type, found::mesh_type::value)).append(" ");
    if (r.is_argument()) text.append("from the argument ").append(names[static_cast<std::size_t>(r.argument)]);
    else text.append(analysis::origin_text(r)).append(lines ? analysis::line_text(r) : std::string());
    text.append("\n");
  }
  return text;
}

/// Prints that. Source: jax.ad_checkpoint.print_saved_residuals.
template <const auto& Loss, class... Args>
void print_saved_residuals() {
  std::fputs(saved_residuals_text<Loss, Args...>().c_str(), stdout);
}

}  // namespace tessera
