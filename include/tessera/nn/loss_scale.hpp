// SPDX-License-Identifier: Apache-2.0
// Loss scaling: gradients of float16 are kept out of its subnormals, steps whose gradients overflow are skipped.
#pragma once

#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/wrappers.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <utility>

namespace tessera::nn {

/// value_and_grad of a loss times a scale, with both divided by it again.
template <class Loss, class Scale, class... Sums>
struct scaled_value_and_grad {
  Loss loss;
  const Scale& scale;

  template <class Model, class... Args>
  constexpr auto operator()(Model& model, const Args&... args) const {
    const auto scaled = [this](auto& m, const auto&... xs) { return loss(m, xs...) * scale; };
    auto found = tessera::value_and_grad(scaled, Sums{}...)(model, args...);
    if constexpr (Poison<decltype(found)>) {
      return found;
    } else {
      auto [value, grads] = found;
      visit_variables(grads, [this](auto& g) {
        constexpr dtype element = std::remove_cvref_t<decltype(g)>::element;
        if constexpr (is_floating(element))
          optim::assign_one(g, optim::value_of(g) / graph::convert(optim::value_of(scale), element));
      });
      return std::pair{value / scale, grads};
    }
  }
};

/// How a loss scale moves: it starts at `initial`, is multiplied by `factor` after `period` good steps in a row, at
/// most to
/// `ceiling`, and divided by it, at least to `floor`, where a gradient is not finite.
struct loss_scale_options {
  double initial = 32768;
  std::int64_t period = 2000;
  double factor = 2;
  double floor = 1;
  double ceiling = 0x1p127;
};

/// Scales losses and watches gradients, as part of a traced step:
///
///     auto [l, grads] = scale.value_and_grad(loss)(model, x, y);
///     scale.update(optimizer, model, grads);
///
/// A step with a gradient that is infinite or NaN leaves the model's parameters and the optimiser's state, its counts
/// of steps included, as they were. Powers of two as factor and start change no bit of what does not overflow. Source:
/// Micikevicius and others 2018; flax.training.dynamic_scale.
template <class Mesh = mesh<>>
struct dynamic_loss_scale {
  using mesh_type = Mesh;
  using number = variable<optimizer_state, dtype::f32, shape<>>;

  number scale;                  ///< of the next step
  optim::counter good_steps;     ///< in a row, since the scale moved last
  optim::counter skipped_steps;  ///< in all
  scalar period, factor, floor, ceiling;

  TESSERA_MODULE(dynamic_loss_scale, scale, good_steps, skipped_steps, period, factor, floor, ceiling)

  /// Within a step: loss and gradients, as without a scale; `sums_in<bf16>` may follow the loss.
  template <class Loss, class... Sums>
  constexpr auto value_and_grad(Loss loss, Sums...) const {
    return scaled_value_and_grad<Loss, number, Sums...>{std::move(loss), scale};
  }

  /// Within a step: optimizer.update(model, grads) if all gradients are finite; then the scale moves. Returns whether
  /// they are, a bool scalar.
  template <class Optimizer, class Model, class Grads>
  constexpr auto update(Optimizer& optimizer, Model& model, const Grads& grads) {
    if constexpr (Poison<Grads> || Poison<Model> || Poison<Optimizer>) {
      return poison{};
    } else {
      const graph::value finite = optim::all_finite(floats_of(grads));
      const optim::values parameters = optim::values_of(model);
      const optim::values state = optim::values_of(optimizer);
      optimizer.update(model, grads);
      optim::detail::keep_unless(finite, model, parameters);
      optim::detail::keep_unless(finite, optimizer, state);
      move(finite);
      return expr<scalar_aval(dtype::bool_), Mesh>{{finite.owner, finite.id}};
    }
  }

 private:
  template <class Grads>
  static constexpr optim::values floats_of(const Grads& grads) {
    optim::values list;
    visit_variables(grads, [&](const auto& g) {
      if constexpr (is_floating(std::remove_cvref_t<decltype(g)>::element)) list.push_back(optim::value_of(g));
    });
    return list;
  }

  constexpr void move(graph::value finite) {
    using graph::op;
    const auto one_more = [](const auto& counter) { return optim::value_of(counter) + 1.0; };
    const graph::value now = optim::value_of(scale);
    const graph::value in_a_row = one_more(good_steps);
    const graph::value due = graph::binary(op::ge, graph::convert(in_a_row, dtype::f32), optim::traced_number(period));
    const graph::value up = graph::binary(op::min, now * optim::traced_number(factor), optim::traced_number(ceiling));
    const graph::value down = graph::binary(op::max, now / optim::traced_number(factor), optim::traced_number(floor));
    const graph::value none = graph::number_like(in_a_row, 0);
    optim::assign_one(scale, graph::select(finite, graph::select(due, up, now), down));
    optim::assign_one(good_steps, graph::select(finite, graph::select(due, none, in_a_row), none));
    optim::assign_one(skipped_steps, graph::select(finite, optim::value_of(skipped_steps), one_more(skipped_steps)));
  }
};

/// A scale that never moves; steps are not skipped.
template <class Mesh = mesh<>>
struct static_loss_scale {
  using mesh_type = Mesh;

  scalar scale;

  TESSERA_MODULE(static_loss_scale, scale)

  template <class Loss, class... Sums>
  constexpr auto value_and_grad(Loss loss, Sums...) const {
    return scaled_value_and_grad<Loss, scalar, Sums...>{std::move(loss), scale};
  }
  template <class Optimizer, class Model, class Grads>
  constexpr void update(Optimizer& optimizer, Model& model, const Grads& grads) const {
    optimizer.update(model, grads);
  }
};

/// Options, or value_error for the first one out of range.
inline const loss_scale_options& checked(const loss_scale_options& options) {
  const auto check = [](const char* name, double value, bool holds, const char* range) {
    optim::checked("loss_scale", name, value, holds, range);
  };
  check("floor", options.floor, options.floor > 0, "finite and more than 0");
  check("ceiling", options.ceiling, options.ceiling >= options.floor && options.ceiling <= 0x1p127,
        "at least floor and at most 2^127");
  check("initial", options.initial, options.initial >= options.floor && options.initial <= options.ceiling,
        "at least floor and at most ceiling");
  check("factor", options.factor, options.factor > 1, "finite and more than 1");
  check("period", static_cast<double>(options.period), options.period >= 1 && options.period <= (1 << 24),
        "at least 1 and at most 2^24");
  return options;
}

/// The scale that a training on Mesh starts with, `make_loss_scale<cluster>({.initial = 0x1p24, .period = 50})`;
/// options out of range raise value_error.
template <class Mesh = mesh<>>
dynamic_loss_scale<Mesh> make_loss_scale(const loss_scale_options& options = {}) {
  checked(options);
  dynamic_loss_scale<Mesh> made;
  made.scale.data = make_scalar(options.initial).data;
  for (optim::counter* counter : {&made.good_steps, &made.skipped_steps})
    counter->data = runtime::make_storage(scalar_aval(dtype::i32), mesh_value{});
  made.period = make_scalar(static_cast<double>(options.period));
  made.factor = make_scalar(options.factor);
  made.floor = make_scalar(options.floor);
  made.ceiling = make_scalar(options.ceiling);
  return made;
}

template <class Mesh = mesh<>>
static_loss_scale<Mesh> make_static_loss_scale(double scale) {
  return {make_scalar(checked({.initial = scale, .floor = scale}).initial)};
}

}  // namespace tessera::nn
