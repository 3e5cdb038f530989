// SPDX-License-Identifier: Apache-2.0
// The programs of the memory table, and what is known of each: XLA's temporary MiB, and ours at most.
#pragma once

#include "remat/mlp.hpp"
#include "remat/transformer.hpp"
#include "remat/object_transformer.hpp"

#include <string_view>

namespace remat {

using one_device = ts::mesh<>;

template <ts::dtype E, std::int64_t... Extents>
using array_of = ts::tensor<E, ts::shape<Extents...>, P<>, one_device>;
template <std::int64_t... Extents>
using array = array_of<ts::f32, Extents...>;

template <std::int64_t L, std::int64_t D, std::int64_t H, ts::dtype E = ts::f32>
using written_out = ts::nn::bound<mlp_weights<L, D, H, E>, one_device>;
template <std::int64_t L, std::int64_t D, std::int64_t H, ts::dtype E = ts::f32>
using mlp_stack = ts::nn::bound<ts::nn::stack<L, mlp_layer<D, H, E>>, one_device>;
template <std::int64_t L, std::int64_t D, std::int64_t H, std::int64_t F, ts::dtype E = ts::f32>
using transformer_stack = ts::nn::bound<transformer<L, D, H, F, E>, one_device>;

/// Figures of a row in MiB. XLA's are what JAX 0.12 printed for 8 simulated CPU devices.
struct published {
  std::string_view name;
  double xla;
  double target;
};

/// A step and its arguments.
template <const auto& Step, class... Args>
struct job {
  static ts::graph::graph trace() { return ts::transform::traced<Step, Args...>::run(); }
  using lowered = ts::lowered<Step, Args...>;
};

using mlp_x = array<256, 256>;
template <auto Loss, ts::dtype E = ts::f32>
using unrolled_job = job<gradient<Loss>, written_out<16, 256, 1024, E>, array_of<E, 256, 256>>;
template <auto Call, ts::dtype E = ts::f32>
using scan_job = job<gradient<stack_loss<Call>>, mlp_stack<16, 256, 1024, E>, array_of<E, 256, 256>>;
template <auto Call, ts::dtype E = ts::f32, class... Options>
using object_job = job<gradient<object_loss<Call>>, ts::nn::bound<deep_mlp<8, 256, 1024, Options...>, one_device>,
                       array_of<E, 256, 256>>;
template <bool Checkpointed>
using wide_job = job<wide_step<Checkpointed>, array<512, 8192>, array<8192, 512>, array<64, 512>, array<64, 512>>;
template <auto Call, ts::dtype E = ts::f32>
using transformer_job = job<gradient<transformer_loss<Call>>, transformer_stack<8, 256, 4, 1024, E>,
                            array_of<E, 8, 128, 256>, array_of<E, 8, 128, 256>>;
template <auto Call>
using transformer_object_job =
    job<gradient<object_transformer_loss<Call>>, ts::nn::bound<object_transformer<8, 256, 4, 1024>, one_device>,
        array<8, 128, 256>, array<8, 128, 256>>;
template <std::int64_t K>
using group_job = job<grouped_gradient<K>, array<64, 256, 256>, mlp_x>;

/// Calls f(published, job) for every row.
template <class F>
void for_each_row(F f) {
  f(published{"mlp_unrolled.none", 83.25, 22}, unrolled_job<plain_loss>{});
  f(published{"mlp_unrolled.whole", 83.25, 22}, unrolled_job<whole_loss>{});
  f(published{"mlp_unrolled.per_layer", 37, 6.5}, unrolled_job<layerwise_loss>{});
  f(published{"mlp_scan.none", 88.5, 22}, scan_job<call_layer>{});
  f(published{"mlp_scan.everything", 92.5, 38}, scan_job<call_checkpointed<ts::everything_saveable>>{});
  f(published{"mlp_scan.dots", 25.5, 22}, scan_job<call_checkpointed<ts::dots_saveable>>{});
  f(published{"mlp_scan.names", 25.5, 22}, scan_job<call_checkpointed<ts::save_only_these_names<"pre_act">>>{});
  f(published{"mlp_scan.nothing", 9.5, 6.25}, scan_job<call_checkpointed<ts::nothing_saveable>>{});
  f(published{"mlp_object.none", 12.25, 11}, object_job<call_layer>{});
  f(published{"mlp_object.dots", 2.25, 2.25}, object_job<call_checkpointed<ts::dots_saveable>>{});
  f(published{"mlp_object.full", 2.25, 2.25}, object_job<call_checkpointed<ts::nothing_saveable>>{});
  f(published{"wide.plain", 6.125, 3}, wide_job<false>{});
  f(published{"wide.remat", 4.125, 3}, wide_job<true>{});
  f(published{"transformer.none", 318.92, 100}, transformer_job<call_layer>{});
  f(published{"transformer.dots", 133.04, 105}, transformer_job<call_checkpointed<ts::dots_saveable>>{});
  f(published{"transformer.dots_no_batch", 108.04, 80},
    transformer_job<call_checkpointed<ts::dots_with_no_batch_dims_saveable>>{});
  f(published{"transformer.names", 81.07, 45},
    transformer_job<call_checkpointed<ts::save_only_these_names<"mlp_hidden">>>{});
  f(published{"transformer.nothing", 50.07, 24}, transformer_job<call_checkpointed<ts::nothing_saveable>>{});
  f(published{"transformer_object.none", 227.19, 100}, transformer_object_job<call_layer>{});
  f(published{"transformer_object.remat", 34.03, 24},
    transformer_object_job<call_checkpointed<ts::nothing_saveable>>{});
  f(published{"ex2.none", 33.25, 33}, group_job<0>{});
  f(published{"ex2.1", 17.25, 17}, group_job<1>{});
  f(published{"ex2.2", 11.25, 10}, group_job<2>{});
  f(published{"ex2.4", 9.25, 8}, group_job<4>{});
  f(published{"ex2.8", 11.25, 9}, group_job<8>{});
  f(published{"ex2.16", 18.25, 14}, group_job<16>{});
  f(published{"ex2.32", 33.75, 24}, group_job<32>{});
  f(published{"ex2.64", 33.25, 33}, group_job<64>{});
}

/// Calls f(name, job, job in bfloat16) for rows of which both are known.
template <class F>
void for_each_pair(F f) {
  constexpr ts::dtype E = ts::bf16;
  constexpr auto& recomputed = call_checkpointed<ts::nothing_saveable>;
  f("mlp_unrolled.none", unrolled_job<plain_loss>{}, unrolled_job<plain_loss, E>{});
  f("mlp_unrolled.per_layer", unrolled_job<layerwise_loss>{}, unrolled_job<layerwise_loss, E>{});
  f("mlp_scan.none", scan_job<call_layer>{}, scan_job<call_layer, E>{});
  f("mlp_scan.nothing", scan_job<recomputed>{}, scan_job<recomputed, E>{});
  f("mlp_object.none", object_job<call_layer>{}, object_job<call_layer, E, ts::param_dtype<E>>{});
  f("transformer.none", transformer_job<call_layer>{}, transformer_job<call_layer, E>{});
  f("transformer.nothing", transformer_job<recomputed>{}, transformer_job<recomputed, E>{});
}

/// What the plan of a job needs, by the passes that `lowered` runs, at run time.
template <class Job>
ts::analysis::summary planned(Job) {
  return ts::analysis::summarise(ts::transform::lower(Job::trace()), one_device::value);
}

constexpr double mib(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace remat
