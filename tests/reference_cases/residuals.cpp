// SPDX-License-Identifier: Apache-2.0
// Sections 6.6 and 6.10: what gradients keep of the residual MLP, of the wide block and of the transformer is no more
// than published.
#include <tessera/analysis/saved_residuals.hpp>

#include "reference/reference.hpp"

#include <remat/transformer.hpp>

#include <catch2/catch.hpp>

namespace {

namespace ts = tessera;

template <std::int64_t... Extents>
using array = ts::tensor<ts::f32, ts::shape<Extents...>, ts::P<>, ts::mesh<>>;

/// MiB that a loop of so many trips keeps, one array a trip.
double stacked_mib(const auto& residuals, std::int64_t trips) {
  std::int64_t bytes = 0;
  for (const ts::saved_residual& r : residuals)
    if (r.trips == trips) bytes += r.bytes;
  return static_cast<double>(bytes) / static_cast<double>(ts::MiB);
}

template <auto Policy>
inline constexpr auto checkpointed = remat::call_checkpointed<Policy>;

template <auto Call>
double mlp_mib() {
  using layers_type = ts::nn::bound<ts::nn::stack<16, remat::mlp_layer<256, 1024>>, ts::mesh<>>;
  return stacked_mib(ts::saved_residuals<remat::stack_loss<Call>, layers_type, array<256, 256>>(), 16);
}

template <auto Policy>
double transformer_mib() {
  using layers_type = ts::nn::bound<remat::transformer<8, 256, 8, 1024>, ts::mesh<>>;
  using batch = array<8, 128, 256>;
  return stacked_mib(ts::saved_residuals<remat::transformer_loss<checkpointed<Policy>>, layers_type, batch, batch>(),
                     8);
}

template <bool Checkpointed>
int hidden_arrays() {
  using weights = std::tuple<array<512, 8192>, array<8192, 512>>;
  int count = 0;
  for (const ts::saved_residual& r :
       ts::saved_residuals<remat::wide_loss<Checkpointed>, weights, array<64, 512>, array<64, 512>>())
    count += !r.is_argument() && r.type.size() == 64 * 8192;
  return count;
}

}  // namespace

TEST_CASE("the scan of 16 layers keeps no more than published, by policy") {
  const reference::json got{{"none", mlp_mib<remat::call_layer>()},
                            {"dots_saveable", mlp_mib<checkpointed<ts::dots_saveable>>()},
                            {"nothing_saveable", mlp_mib<checkpointed<ts::nothing_saveable>>()}};
  CHECK(reference::check("saved_residual_mib_scan16", got));
  CHECK(got["nothing_saveable"] == 4.0);  // the input of each layer
}

TEST_CASE("the wide block keeps hidden arrays without a checkpoint only") {
  CHECK(reference::check("wide_block_saved_hidden_arrays",
                         reference::json::array({hidden_arrays<false>(), hidden_arrays<true>()})));
  CHECK(hidden_arrays<false>() > 0);
}

TEST_CASE("the transformer keeps the inputs of its layers, and products if the policy says so") {
  const reference::json got{
      {"nothing_saveable", transformer_mib<ts::nothing_saveable>()},
      {"dots_with_no_batch_dims_saveable", transformer_mib<ts::dots_with_no_batch_dims_saveable>()}};
  CHECK(reference::check("transformer_saved_residual_mib", got));
  CHECK(got["nothing_saveable"] == 8.0);
  CHECK(got["dots_with_no_batch_dims_saveable"] > 8.0);
}
