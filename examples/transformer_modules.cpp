// SPDX-License-Identifier: Apache-2.0
// A transformer of layer objects, with a checkpoint round each block and without: what the gradient needs beside
// arguments and results, and that its bits are the same.
#include "remat/table.hpp"

#include <tessera/random/distributions.hpp>
#include <tessera/runtime/evaluate.hpp>

#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

namespace {

using namespace remat;
using bytes = std::vector<std::byte>;
using model_type = object_transformer<8, 256, 4, 1024>;
constexpr std::size_t rows = 2;  ///< of the eight, whose gradients are compared
template <auto Call>
using few_rows = job<gradient<object_transformer_loss<Call>>, ts::nn::bound<model_type, one_device>,
                     array<rows, 128, 256>, array<rows, 128, 256>>;
constexpr auto checkpointed = call_checkpointed<ts::nothing_saveable>;

bytes as_bytes(std::span<const float> values) {
  bytes all(values.size_bytes());
  std::memcpy(all.data(), values.data(), all.size());
  return all;
}
bytes normal(ts::random::key key) {
  std::vector<float> values(rows * 128 * 256);
  ts::random::fill_normal(std::span(values), key, 0);
  return as_bytes(values);
}

/// The largest distance between two lists of float32 arrays.
double distance(const std::vector<bytes>& a, const std::vector<bytes>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t at = 0; at < a[i].size(); at += sizeof(float)) {
      float x = 0, y = 0;
      std::memcpy(&x, &a[i][at], sizeof x);
      std::memcpy(&y, &b[i][at], sizeof y);
      largest = std::max(largest, std::abs(static_cast<double>(x) - static_cast<double>(y)));
    }
  return largest;
}

template <auto Call>
double temporary_mib() {
  return mib(planned(transformer_object_job<Call>{}).memory.temp_size_in_bytes);
}

}  // namespace

int main() {
  const auto model = ts::init<model_type>(ts::nn::rngs{0});
  std::vector<bytes> inputs;
  ts::visit_variables(model, [&](const auto& v) { inputs.push_back(as_bytes(ts::nn::to_vector(v))); });
  const auto keys = ts::random::split<3>(ts::random::make_key(610));
  inputs.push_back(normal(keys[1]));
  inputs.push_back(normal(keys[2]));

  std::puts("8 blocks of layers, x (8, 128, 256), 4 heads, MLP 1024 wide; gradient for the parameters");
  print_head();
  print_row<transformer_object_job<call_layer>>("no checkpoint", 227.19);
  print_row<transformer_object_job<checkpointed>>("a checkpoint round each block", 34.03);

  const double plain = temporary_mib<call_layer>(), remat = temporary_mib<checkpointed>();
  const auto expected = ts::runtime::evaluate(few_rows<call_layer>::trace(), inputs);
  const double apart = distance(ts::runtime::evaluate(few_rows<checkpointed>::trace(), inputs), expected);
  std::printf("saved: %.1f%% (XLA 85.0%%); largest difference of gradients: %.1e (XLA 0.0e+00)\n",
              100 * (1 - remat / plain), apart);
  const bool right = plain < 227.19 && remat < 34.03 && remat < plain / 2 && apart == 0;
  std::puts(right ? "less than XLA in both, and the same gradients" : "not as it should be");
  return right ? 0 : 1;
}
