// SPDX-License-Identifier: Apache-2.0
// How every reduction is made: which dimensions, what stays of them, how the result is cut.
#pragma once

#include <tessera/ops/options.hpp>

namespace tessera {

/// An argument of reductions: reduced dimensions stay, with extent 1.
struct keepdims_t {};
inline constexpr keepdims_t keepdims{};

namespace ops {

/// What reductions take after the array, in any order: keepdims, out_sharding<P<...>>.
template <class T>
concept ReduceOption = std::same_as<T, keepdims_t> || is_out_sharding<T>;

/// The dimensions named, or all of them where none is.
template <int... Dims>
constexpr sharding::dim_set_ruling dims_named(int rank) {
  if constexpr (sizeof...(Dims) == 0) {
    return {sharding::all_dims(rank)};
  } else {
    const int named[] = {Dims...};
    return sharding::named_dims(named, rank);
  }
}

/// A kind of reduction says: fault(operand type, dims), what is wrong beyond dimensions and cuts; element(dtype), the
/// result's element type; write(operand, dims, keep, spec), the nodes; and, if what is pending may stay so, `pending`,
/// how it combines.
template <class Kind, bool Keep, class OutSpec, int... Dims>
inline constexpr auto reduction_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const sharding::dim_set_ruling dims = dims_named<Dims...>(x[0].rank);
  if (dims.failure != message::none) return refuse(dims.failure, dims.named);
  if (const message why = Kind::fault(x[0], dims.dims); why != message::none) return refuse(why);
  aval operand = x[0];
  operand.type = Kind::element(operand.type);
  const chosen_spec<OutSpec> spec(mesh);
  if constexpr (requires { Kind::pending; }) {
    return sharding::reduce(operand, dims.dims, Keep, spec.get(), mesh, Kind::pending);
  } else {
    if (x[0].unreduced != 0) return refuse(message::unreduced_operand);
    ruling ruled = sharding::reduce(operand, dims.dims, Keep, spec.get(), mesh);
    if (ruled.ok() && ruled.result.unreduced != 0) ruled.failure = message::unreduced_result;
    return ruled;
  }
}};

/// 16-bit numbers are reduced in float32, and what comes of it is rounded.
template <class Kind, bool Keep, int... Dims>
inline constexpr auto write_reduction = [](const std::array<graph::value, 1>& x, const aval& type) {
  const spec_value spec = graph::spec_of(type);
  const graph::value wide = graph::convert(x[0], accumulator(x[0].type().type));
  return graph::convert(Kind::write(wide, dims_named<Dims...>(wide.type().rank).dims, Keep, &spec), type.type);
};

/// `reduction<"sum", sum_kind, 0, 1>{}(x, options...)`.
template <text Name, class Kind, int... Dims>
struct reduction {
  template <ReduceOption... Options>
  constexpr auto operator()(const ArrayLike auto& x, Options...) const {
    constexpr bool keep = (std::same_as<Options, keepdims_t> || ...);
    using spec = typename spec_among<Options...>::type;
    return apply<Name, reduction_rule<Kind, keep, spec, Dims...>>(write_reduction<Kind, keep, Dims...>, x);
  }
};

/// bool counts as 0 and 1.
constexpr graph::value as_number(graph::value x) {
  return x.type().type == dtype::bool_ ? graph::convert(x, dtype::i32) : x;
}
constexpr dtype number_element(dtype d) { return d == dtype::bool_ ? dtype::i32 : d; }

constexpr message fault_if_empty(const aval& x, sharding::dim_set dims) {
  return sharding::reduced_size(x, dims) == 0 ? message::reduce_empty : message::none;
}
constexpr message fault_unless_float(const aval& x) {
  return is_floating(x.type) ? message::none : message::reduce_needs_float;
}

}  // namespace ops

}  // namespace tessera
