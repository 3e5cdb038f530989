// SPDX-License-Identifier: Apache-2.0
// Transformations around others: steps that are skipped, gathered over several calls, or looked back upon.
#pragma once

#include <tessera/optim/transforms.hpp>

#include <limits>

namespace tessera::optim {

/// Whether all elements are finite, as a bool scalar. Reads each array twice and writes none.
constexpr graph::value all_finite(const values& updates) {
  using namespace value_math;
  const auto extremum = [](op code, value g) {
    return graph::convert(graph::reduce(code, g, sharding::all_dims(g.type().rank), false), dtype::f32);
  };
  value finite{};
  for (const value& g : updates) {
    if (g.type().size() == 0) continue;
    const value most = extremum(op::reduce_max, g);
    const value least = extremum(op::reduce_min, g);
    const value infinity = graph::number_like(most, std::numeric_limits<double>::infinity());
    const value here = both(less(most, infinity), less(-infinity, least));
    finite = finite.owner == nullptr ? here : both(finite, here);
  }
  return finite;
}

namespace detail {

/// Every variable of a state: the new value where the predicate holds, else the old one.
template <class State>
constexpr void keep_unless(graph::value predicate, State& state, const values& old) {
  values chosen = values_of(state);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i].id != old[i].id) chosen[i] = graph::select(predicate, chosen[i], old[i]);
  assign(state, chosen);
}

/// Updates where the predicate holds, else -0, which added to a parameter changes no bit of it.
constexpr void zero_unless(graph::value predicate, values& updates) {
  for (graph::value& u : updates) u = graph::select(predicate, u, graph::number_like(u, -0.0));
}

constexpr graph::value zero_if(graph::value predicate, graph::value v) {
  return graph::select(predicate, graph::number_like(v, 0), v);
}

}  // namespace detail

/// The inner transformation where all gradients are finite; else updates of 0, and the inner state, step counts
/// included, as it was. After more than `max_consecutive_errors` such steps in a row they are let through. Source:
/// optax.apply_if_finite.
template <class Inner>
struct apply_if_finite_t {
  nn::scalar max_consecutive_errors;
  Inner inner;

  template <class Model, class Wrt>
  struct state {
    counter notfinite_count, total_notfinite;
    typename Inner::template state<Model, Wrt> inner;
    TESSERA_MODULE(state, notfinite_count, total_notfinite, inner)
  };

  TESSERA_MODULE(apply_if_finite_t, max_consecutive_errors, inner)

  template <class State>
  constexpr void update(values& updates, const values& params, State& s) const {
    using namespace value_math;
    if (updates.empty()) return;
    const value finite = all_finite(updates);
    const value row = value_of(s.notfinite_count);
    const value total = value_of(s.total_notfinite);
    const value longer = detail::zero_if(finite, row + 1.0);
    assign_one(s.notfinite_count, longer);
    assign_one(s.total_notfinite, graph::select(finite, total, total + 1.0));
    const value too_many = less(traced_number(max_consecutive_errors), graph::convert(longer, dtype::f32));
    const value applied = either(finite, too_many);
    const values old = values_of(s.inner);
    inner.update(updates, params, s.inner);
    detail::keep_unless(applied, s.inner, old);
    detail::zero_unless(applied, updates);
  }

  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr> params) const {
    start_state(inner, s.inner, params);
  }
};

template <class Inner>
apply_if_finite_t<Inner> apply_if_finite(Inner inner, std::int64_t max_consecutive_errors) {
  return {
      nn::make_scalar(checked("apply_if_finite", "max_consecutive_errors", static_cast<double>(max_consecutive_errors),
                              max_consecutive_errors >= 0, "at least 0")),
      std::move(inner)};
}

/// The same that never lets one through: parameters, state and step counts stay as they were. Source:
/// optax.skip_not_finite.
template <class Inner>
apply_if_finite_t<Inner> skip_not_finite(Inner inner) {
  return {nn::make_scalar(std::numeric_limits<double>::infinity()), std::move(inner)};
}

/// What is compiled into multi_steps: the mean of gradients or their sum, and the element type they are gathered in.
struct multi_steps_form {
  bool use_grad_mean = true;
  bool typed = false;
  dtype accumulator_dtype = dtype::f32;
};

/// Gathers gradients over k calls, whose updates are 0 but for the last, which is the inner one of the mean gradient:
/// a <- a + (g - a) / (i + 1). k is a number or a schedule of the count of inner steps; a window that is made shorter
/// while it runs ends with the next call. Source: optax.MultiSteps.
template <multi_steps_form Form, Schedule Every, class Inner>
struct multi_steps_t {
  using accumulator_map = std::conditional_t<Form.typed, of_dtype<Form.accumulator_dtype>, same_type>;
  Every every_k;
  Inner inner;

  template <class Model, class Wrt>
  struct state {
    counter mini_step, gradient_step;
    like<Model, Wrt, accumulator_map> acc_grads;
    typename Inner::template state<Model, Wrt> inner;
    TESSERA_MODULE(state, mini_step, gradient_step, acc_grads, inner)
  };

  TESSERA_MODULE(multi_steps_t, every_k, inner)

  template <class State>
  constexpr void update(values& updates, const values& params, State& s) const {
    using namespace value_math;
    const value mini = value_of(s.mini_step);
    const value step = value_of(s.gradient_step);
    const value next = graph::convert(mini + 1.0, dtype::f32);
    const value ends = graph::binary(op::ge, next, every_k.at(graph::convert(step, dtype::f32)));
    values gathered = values_of(s.acc_grads);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value a = widened(gathered[i], updates[i]);
      const value g = widened(updates[i], a);
      const value sum = Form.use_grad_mean ? a + (g - a) / number_for(a, next) : a + g;
      updates[i] = stored(sum, updates[i]);
      gathered[i] = detail::zero_if(ends, stored(sum, gathered[i]));
    }
    const values old = values_of(s.inner);
    inner.update(updates, params, s.inner);
    detail::keep_unless(ends, s.inner, old);
    detail::zero_unless(ends, updates);
    assign(s.acc_grads, gathered);
    assign_one(s.mini_step, detail::zero_if(ends, mini + 1.0));
    assign_one(s.gradient_step, graph::select(ends, step + 1.0, step));
  }

  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr> params) const {
    start_state(inner, s.inner, params);
  }
};

/// `multi_steps(adam(1e-2), 4)`, `multi_steps<multi_steps_form{.use_grad_mean = false}>(...)`.
template <multi_steps_form Form = multi_steps_form{}, class Inner>
multi_steps_t<Form, constant_schedule_t, Inner> multi_steps(Inner inner, std::int64_t every_k) {
  return {
      constant_schedule(checked("multi_steps", "every_k", static_cast<double>(every_k), every_k >= 1, "at least 1")),
      std::move(inner)};
}
template <multi_steps_form Form = multi_steps_form{}, class Inner, Schedule Every>
multi_steps_t<Form, Every, Inner> multi_steps(Inner inner, Every every_k) {
  return {std::move(every_k), std::move(inner)};
}

/// Every `sync_period` steps slow <- slow + slow_step_size (fast - slow), and fast <- slow. Slow parameters start as
/// the parameters and are state. Source: Zhang and others 2019; optax.lookahead.
template <class Inner>
struct lookahead_t {
  nn::scalar sync_period, slow_step_size;
  Inner inner;

  template <class Model, class Wrt>
  struct state {
    counter steps_since_sync;
    like<Model, Wrt> slow;
    typename Inner::template state<Model, Wrt> inner;
    TESSERA_MODULE(state, steps_since_sync, slow, inner)
  };

  TESSERA_MODULE(lookahead_t, sync_period, slow_step_size, inner)

  template <class State>
  constexpr void update(values& updates, const values& params, State& s) const {
    using namespace value_math;
    const value steps = value_of(s.steps_since_sync);
    const value next = graph::convert(steps + 1.0, dtype::f32);
    const value meets = graph::binary(op::ge, next, traced_number(sync_period));
    inner.update(updates, params, s.inner);
    values slow = values_of(s.slow);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value ahead = (params[i] + updates[i]) - slow[i];
      const value moved = slow[i] + number_for(slow[i], traced_number(slow_step_size)) * ahead;
      updates[i] = graph::select(meets, moved - params[i], updates[i]);
      slow[i] = graph::select(meets, moved, slow[i]);
    }
    assign(s.slow, slow);
    assign_one(s.steps_since_sync, detail::zero_if(meets, steps + 1.0));
  }

  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr> params) const {
    copy_arrays(s.slow, params);
    start_state(inner, s.inner, params);
  }
};

template <class Inner>
lookahead_t<Inner> lookahead(Inner inner, std::int64_t sync_period, double slow_step_size) {
  return {nn::make_scalar(
              checked("lookahead", "sync_period", static_cast<double>(sync_period), sync_period >= 1, "at least 1")),
          nn::make_scalar(checked("lookahead", "slow_step_size", slow_step_size,
                                  slow_step_size >= 0 && slow_step_size <= 1, "in [0, 1]")),
          std::move(inner)};
}

}  // namespace tessera::optim
