// SPDX-License-Identifier: Apache-2.0
// Operations from outside the library: own rule, own kernel, own gradient.
#pragma once

#include <tessera/kernels/custom.hpp>
#include <tessera/ops/custom_vjp.hpp>

namespace tessera {

namespace ops {

/// The name of a type, as the compiler writes it in the name of this function.
template <class T>
constexpr std::string_view type_name() {
  return __PRETTY_FUNCTION__;
}

/// The number of a custom operation in traces and programs: a hash of its type's name (FNV-1a).
template <class Operation>
inline constexpr std::uint64_t custom_number = [] {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char c : type_name<Operation>()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}();

/// Whoever names `done` makes the kernel known before the program starts.
template <class Operation>
struct custom_registration {
  static inline const bool done =
      kernels::add_custom_operation(custom_number<Operation>, Operation::name.view(), &Operation::run);
};

template <class Operation>
struct custom_rule {
  constexpr ruling operator()(std::span<const aval> x, const mesh_value& mesh) const {
    return Operation::rule(x, mesh);
  }
};

template <class Operation, std::size_t Count>
constexpr graph::value write_custom(const std::array<graph::value, Count>& x, const aval& type) {
  constexpr op codes[] = {op::custom1, op::custom2, op::custom3};
  graph::node n;
  n.code = codes[Count - 1];
  n.type = type;
  for (std::size_t i = 0; i < Count; ++i) n.operands[i] = x[i].id;
  n.attribute[0] = custom_number<Operation>;
  return {x[0].owner, x[0].owner->add(n)};
}

/// The operation without its gradient.
template <class Operation>
inline constexpr auto plain_custom_op = []<ArrayLike... Xs>(const Xs&... xs)
                                            -> result_of<Operation::name, custom_rule<Operation>{}, Xs...> {
  static_cast<void>(&custom_registration<Operation>::done);
  return apply<Operation::name, custom_rule<Operation>{}>(
      [](const std::array<graph::value, sizeof...(Xs)>& x, const aval& type) {
        return write_custom<Operation>(x, type);
      },
      xs...);
};

/// Named, not deduced: a gradient may use its own operation.
template <class Operation, class... Xs>
using custom_op_result = result_of<Operation::name, custom_rule<Operation>{}, Xs...>;

}  // namespace ops

/// `custom_op<Operation>(x, ...)`: one to three arrays -> one, by the user's own kernel. Operation is a type with
///   static constexpr auto name = text("...");
///   static constexpr ruling rule(std::span<const aval>, const mesh_value&);  // the type of the result, or refuse(...)
///   static void run(const custom_call&);                                     // fills one device's block of the result
///   static constexpr auto gradient = [](auto... operands, auto result, auto ct) { return std::tuple(...); };  // optional
/// `run` is called once for each distinct shard, on the blocks that the operands' types and the rule's result say; no
/// data is moved for it, so a rule refuses cuts with which the blocks would not do. The gradient gives one cotangent an
/// operand, of exactly its type, or `none`; without one the operation cannot be differentiated. What it uses is saved.
/// To be differentiated twice it must not use the result. See docs/custom_operations.md; the example is
/// examples/custom_op.cpp.
template <class Operation, ArrayLike... Xs>
requires(sizeof...(Xs) >= 1 && sizeof...(Xs) <= 3 && !Poison<ops::custom_op_result<Operation, Xs...>>)  //
    constexpr ops::custom_op_result<Operation, Xs...> custom_op(const Xs&... xs) {
  constexpr auto& plain = ops::plain_custom_op<Operation>;
  if constexpr (requires { Operation::gradient; }) {
    return custom_vjp(
        plain,
        [](auto... x) {
          const auto y = plain(x...);
          return std::pair(y, std::tuple(x..., y));
        },
        [](auto kept, auto ct) {
          return std::apply([&](auto... parts) { return Operation::gradient(parts..., ct); }, kept);
        })(xs...);
  } else {
    return plain(xs...);
  }
}
template <class Operation, ArrayLike... Xs>
requires(sizeof...(Xs) >= 1 && sizeof...(Xs) <= 3 && Poison<ops::custom_op_result<Operation, Xs...>>)  //
    constexpr auto custom_op(const Xs&... xs) {
  return ops::plain_custom_op<Operation>(xs...);
}

}  // namespace tessera
