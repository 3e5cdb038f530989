// SPDX-License-Identifier: Apache-2.0
// Rows of a table chosen by numbers, and products with the table.
#pragma once

#include <tessera/graph/visit.hpp>
#include <tessera/nn/input.hpp>
#include <tessera/ops/gather.hpp>
#include <tessera/ops/matmul.hpp>
#include <tessera/ops/shape.hpp>

namespace tessera::nn {

/// A gather of rows whose result is cut as the indices and then as a row, where an axis is not in use already.
inline constexpr auto embed_rule = ops::handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const ops::index_plan plan = ops::plan_indices<0, false>(x[0], x.subspan(1), mesh);
  if (plan.failure != message::none) return refuse(plan.failure);
  spec_value spec = graph::spec_of(x[1]);
  if (spec.rank == max_rank) return refuse(message::shape_rank);
  const axis_list row = x[0].dims[1].axes;
  spec.dims[spec.rank++] = (set_of(row) & x[1].cut()) == 0 ? row : 0;
  spec.unreduced = x[0].unreduced;
  spec.reduced = x[0].reduced;
  return sharding::gather(plan.array, plan.indices, plan.how, &spec, mesh);
}};

/// y = embedding[ids]: int32 or uint32[...] -> float32[..., Features], one row of a table of Count rows for each
/// number; `attend(x)` = x embedding^T: float32[..., Features] -> float32[..., Count], logits of all rows. Options:
/// `embedding<P<...>>`, `embedding_init<...>` (normal with variance 1 / Features), `param_dtype<f64>`,
/// `compute_dtype<bf16>`, `precision<...>`. The result is cut as the ids and behind them as a row; rows cut over an
/// axis cost an all-reduce or an all-gather, whichever moves less. attend takes `out_sharding<...>` as matmul does.
/// Gradient: rows of the cotangent added at the ids, in their order. Saved for it: the ids. Errors: a number outside
/// [0, Count) raises index_error (negative ones count from the end). Source: flax.nnx.Embed.
template <std::int64_t Count, std::int64_t Features, class... Options>
struct embed {
  using name = layer_name<"embed", Count, Features>;
  using allowed = allows<name, option::embedding, option::embedding_init, option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t out_features = Features;
  using dtypes = numbers<Options...>;
  static constexpr dtype element = dtypes::storage;
  static constexpr initializer first =
      initializers::variance_scaling(1, initializer::factor::fan_in, initializer::draw::normal, {.in = -2, .out = 0});
  using embedding_type = variable<param, element, shape<Count, Features>, spec_or<option::embedding, P<>, Options...>,
                                  option_or<option::embedding_init, tessera::embedding_init<first>, Options...>::value,
                                  role::embedding, dtypes::master>;

  embedding_type embedding;
  TESSERA_MODULE(embed, embedding)

  constexpr auto operator()(const ArrayLike auto& ids) const {
    return rows(ops::apply<"embed", embed_rule>(ops::write_take<0, false>{}, embedding, ids));
  }

  constexpr auto attend(const ArrayLike auto& x, auto... out) const {
    return with_features<row>(x, [&](const auto& in) {
      return dtypes::computed(matmul(dtypes::summed(in), transpose<1, 0>(dtypes::summed(embedding)), out...));
    });
  }

 private:
  struct row {
    using name = layer_name<"embed", Count, Features>;
    static constexpr std::int64_t in_features = Features;
  };

  template <class Y>
  static constexpr auto rows(const Y& y) {
    if constexpr (Poison<Y>) return y;
    else return dtypes::computed(y);
  }
};

}  // namespace tessera::nn
