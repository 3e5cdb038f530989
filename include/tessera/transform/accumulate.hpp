// SPDX-License-Identifier: Apache-2.0
// Gradients of a large batch from small ones, one after the other.
#pragma once

#include <tessera/ops/control.hpp>
#include <tessera/ops/create.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <tuple>
#include <utility>

namespace tessera {

/// How the losses of micro-batches make that of the batch: their mean, for losses that are means over equally many
/// rows; their sum, for losses that are sums; or the sum of sums over the sum of counts, for losses that give a pair of
/// both.
enum class micro_batches { mean, sum, weighted };

namespace transform {

/// Calls f(handle) for each gradient of a tree of gradients.
template <class Grads>
constexpr graph::list<trace_handle*> handles_of(Grads& grads) {
  graph::list<trace_handle*> handles;
  visit_differentiated(grads, [&](trace_handle& h) { handles.push_back(&h); });
  return handles;
}

/// Zeros in place of the parameters of a model.
template <class Model>
constexpr auto zero_gradients(const Model& model) {
  typename gradients_type<Model>::type zeros{model};
  visit_differentiated(zeros, [](trace_handle& h) {
    graph::graph& here = h.owner->active();
    h = {&here, graph::full(&here, here.type(here.import_node(h.owner, h.id)), 0).id};
  });
  return zeros;
}

/// Replaces every gradient by f(gradient, other's gradient).
template <class Grads, class F>
constexpr void combine_gradients(Grads& grads, Grads other, F f) {
  const graph::list<trace_handle*> others = handles_of(other);
  std::size_t next = 0;
  visit_differentiated(grads, [&](trace_handle& h) {
    const graph::value made = f(graph::seen(h.owner, h.id), graph::seen(others[next]->owner, others[next]->id));
    h = {made.owner, made.id};
    ++next;
  });
}

template <micro_batches How, class F>
struct accumulated {
  F loss;

  /// The loss, the count of what it sums or `none`, and the gradients of a micro-batch.
  template <class Model, class... Slices>
  constexpr auto one(Model& model, const Slices&... slices) const {
    if constexpr (How == micro_batches::weighted) {
      auto [both, grads] = value_and_grad(loss, has_aux)(model, slices...);
      return std::tuple(both.first, both.second, grads);
    } else {
      auto [value, grads] = value_and_grad(loss)(model, slices...);
      return std::tuple(value, none, grads);
    }
  }

  /// Value and gradients divided by an array or a number.
  template <class Sum, class Grads>
  static constexpr auto divided(const Sum& sum, Grads grads, const auto& by) {
    combine_gradients(grads, grads, [&](graph::value g, graph::value) {
      if constexpr (requires { by.handle; }) return g / graph::seen(by.handle.owner, by.handle.id);
      else return g / by;
    });
    const auto value = sum / by;
    return value_with_gradients<std::remove_cvref_t<decltype(value)>, Grads>{value, grads};
  }

  template <class Model, class First, class... Rest>
  constexpr auto operator()(Model& model, const First& first, const Rest&... rest) const {
    const auto body = [&](auto carry, auto slices) {
      auto& [sum, count, total] = carry;
      auto [value, weight, grads] = std::apply([&](const auto&... each) { return one(model, each...); }, slices);
      if constexpr (Poison<decltype(value)>) {
        return poison{};
      } else {
        combine_gradients(total, grads, [](graph::value a, graph::value b) { return a + b; });
        if constexpr (How == micro_batches::weighted)
          return std::pair(std::tuple(sum + value, count + weight, total), none);
        else return std::pair(std::tuple(sum + value, none, total), none);
      }
    };
    const auto zero = zeros<shape<>>(first);
    const auto no_count = [&] {
      if constexpr (How == micro_batches::weighted) return zero;
      else return none;
    }();
    const auto out = scan(body, std::tuple(zero, no_count, zero_gradients(model)), std::tuple(first, rest...)).first;
    if constexpr (Poison<std::remove_cvref_t<decltype(out)>>) {
      return value_with_gradients<poison, poison>{};
    } else {
      const auto& [sum, count, total] = out;
      using Grads = std::remove_cvref_t<decltype(total)>;
      if constexpr (How == micro_batches::sum)
        return value_with_gradients<std::remove_cvref_t<decltype(sum)>, Grads>{sum, total};
      else if constexpr (How == micro_batches::weighted) return divided(sum, total, count);
      else return divided(sum, total, static_cast<double>(First::type.dims[0].extent));
    }
  }
};

}  // namespace transform

/// `auto [l, grads] = accumulate<micro_batches::mean>(loss)(model, xs, ys)`: value and gradients of the batch whose
/// micro-batches lie side by side along the uncut leading dimension of xs and ys: float32[4,16@data,8] is four of 16
/// rows. One micro-batch is in memory at a time. `weighted`: the loss returns pair(sum over tokens, count of tokens),
/// and value and gradients are those of the mean over all tokens. Collectives: sums over devices are left pending in
/// the loop and added up once behind it. Errors: those of scan and value_and_grad. Source: optax.MultiSteps,
/// jax.lax.scan.
template <micro_batches How = micro_batches::mean, class F>
constexpr auto accumulate(F loss) {
  return transform::accumulated<How, F>{std::move(loss)};
}

}  // namespace tessera
