// SPDX-License-Identifier: Apache-2.0
// What modules are made of: arrays of known dtype, shape and sharding that a step reads and replaces.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/core/diagnose.hpp>
#include <tessera/graph/expr.hpp>
#include <tessera/nn/initializers.hpp>
#include <tessera/runtime/storage.hpp>

#include <type_traits>

namespace tessera::nn {

/// Kinds of variables; filters name them.
struct param {};
struct batch_stat {};
struct rng_state {};
struct optimizer_state {};
struct hyperparameter {};

/// An array of a module. Its mesh is that of the module it is initialised in, or of the arrays it meets. Within a traced
/// step it stands for a node and may be assigned an array of exactly its type; at run time it holds memory.
template <class Kind, dtype D, class Shape, class Spec = P<>, initializer Init = initializers::zeros()>
struct variable {
  using variable_kind = Kind;
  using shape_type = Shape;
  using spec_type = Spec;
  static constexpr dtype element = D;
  static constexpr initializer init = Init;

  trace_handle handle{};
  runtime::storage_ptr data{};

  constexpr variable() = default;

  template <Expr Value>
  constexpr variable& operator=(const Value& value) {
    using Mesh = typename Value::mesh_type;
    constexpr ruling own = resolve<D, Shape, Spec, Mesh>();
    if constexpr (!own.ok() || !(own.result == Value::type)) {
      diagnose(report<message::variable_assign, [] {
        text_buffer out;
        write_aval(out, resolve<D, Shape, Spec, typename Value::mesh_type>().result, Value::mesh_type::value);
        out << " = ";
        write_aval(out, Value::type, Value::mesh_type::value);
        return out;
      }>);
    } else {
      handle = value.handle;
    }
    return *this;
  }
  constexpr variable& operator=(poison) { return *this; }
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
