// SPDX-License-Identifier: Apache-2.0
// What modules are made of: arrays of known dtype, shape and sharding that a step reads and replaces.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/core/diagnose.hpp>
#include <tessera/graph/expr.hpp>
#include <tessera/nn/initializers.hpp>
#include <tessera/runtime/storage.hpp>

#include <string_view>
#include <type_traits>

namespace tessera::nn {

/// Kinds of variables; filters name them, tables print their names.
struct param {
  static constexpr std::string_view name = "param";
};
struct batch_stat {
  static constexpr std::string_view name = "batch_stat";
};
struct rng_state {
  static constexpr std::string_view name = "rng_state";
};
struct optimizer_state {
  static constexpr std::string_view name = "optimizer_state";
};
struct hyperparameter {
  static constexpr std::string_view name = "hyperparameter";
};

/// What a variable is for, as part of its type: masks and filters choose by it.
namespace role {
struct weight {
  static constexpr std::string_view name = "weight";
};
struct bias {
  static constexpr std::string_view name = "bias";
};
struct scale {
  static constexpr std::string_view name = "scale";
};
struct embedding {
  static constexpr std::string_view name = "embedding";
};
/// Of variables of which nothing is said.
struct other {};
}  // namespace role

/// An array of a module. A kind of one's own is a type, `struct step_counter {};`, or a variable that is its own kind:
/// `struct step_counter : variable<step_counter, i32, shape<>> { using variable::operator=; };`. Its mesh is that of
/// the module it is initialised in, or of the arrays it meets. Within a traced step it stands for a node and may be
/// assigned an array of exactly its type; at run time it holds memory. Optimisers update it in Master, of which they
/// keep a copy if that is another type.
template <class Kind, dtype D, class Shape, class Spec = P<>, initializer Init = initializers::zeros(),
          class Role = tessera::nn::role::other, dtype Master = accumulator(D)>
struct variable {
  using variable_kind = Kind;
  using role = Role;
  using shape_type = Shape;
  using spec_type = Spec;
  static constexpr dtype element = D;
  static constexpr dtype master = Master;
  static constexpr initializer init = Init;

  trace_handle handle{};
  runtime::storage_ptr data{};

  constexpr variable() = default;
  constexpr variable(const variable& other) : handle(other.handle), data(other.data) { handle.watched = false; }
  constexpr variable(variable&&) = default;
  constexpr variable& operator=(const variable& other) {
    handle.become(other.handle.owner, other.handle.id);
    data = other.data;
    return *this;
  }

  template <class>
  static constexpr text_buffer const_details() {
    text_buffer out;
    write_aval(out, plain_aval<D, Shape>(), mesh_value{});
    return out;
  }

  template <Expr Value>
  constexpr variable& operator=(const Value& value) {
    using Mesh = typename mesh_around<typename Value::mesh_type>::type;
    constexpr ruling own = resolve<D, Shape, Spec, Mesh>();
    if constexpr (!own.ok() || !(own.result == Value::type)) {
      diagnose(report<message::variable_assign, [] {
        text_buffer out;
        write_aval(out, resolve<D, Shape, Spec, typename mesh_around<typename Value::mesh_type>::type>().result,
                   Value::mesh_type::value);
        out << " = ";
        write_aval(out, Value::type, Value::mesh_type::value);
        return out;
      }>);
    } else {
      handle.become(value.handle.owner, value.handle.id);
    }
    return *this;
  }
  constexpr variable& operator=(poison) { return *this; }

  /// `calls += 1`: the variable plus, minus, times, by something, of its own type.
  template <class T>
  constexpr variable& operator+=(const T& x) {
    return *this = *this + x;
  }
  template <class T>
  constexpr variable& operator-=(const T& x) {
    return *this = *this - x;
  }
  template <class T>
  constexpr variable& operator*=(const T& x) {
    return *this = *this * x;
  }
  template <class T>
  constexpr variable& operator/=(const T& x) {
    return *this = *this / x;
  }

  /// A const variable is not assigned: the build stops.
  template <ArrayLike Value>
  constexpr const variable& operator=(const Value&) const {
    if constexpr (!Poison<Value>) diagnose(report<message::variable_const, &const_details<Value>>);
    return *this;
  }
};

/// A number that a step sees as an argument: changing it compiles nothing anew.
using scalar = variable<hyperparameter, dtype::f32, shape<>>;

/// A scalar that holds `number`.
scalar make_scalar(double number);

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED scalar make_scalar(double number) {
  scalar s;
  s.data = runtime::make_storage(scalar_aval(dtype::f32), mesh_value{});
  const auto value = static_cast<float>(number);
  runtime::copy_from_host(*s.data, &value);
  return s;
}

#endif

}  // namespace tessera::nn
