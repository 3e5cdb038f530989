// SPDX-License-Identifier: Apache-2.0
// What checkpoints cost and save in an 8-layer causal transformer of 6,299,648 parameters.
#include "remat/table.hpp"

int main() {
  using namespace remat;
  std::puts("8 blocks, x (8, 128, 256), 4 heads, MLP 1024 wide; gradient for the parameters");
  print_head();
  constexpr auto names = call_checkpointed<ts::save_only_these_names<"mlp_hidden">>;
  print_row<transformer_job<call_layer>>("no checkpoint", 318.92);
  print_row<transformer_job<call_checkpointed<ts::nothing_saveable>>>("nothing_saveable", 50.07);
  print_row<transformer_job<call_checkpointed<ts::dots_saveable>>>("dots_saveable", 133.04);
  print_row<transformer_job<call_checkpointed<ts::dots_with_no_batch_dims_saveable>>>(
      "dots_with_no_batch_dims_saveable", 108.04);
  print_row<transformer_job<names>>("save_only_these_names(\"mlp_hidden\")", 81.07);
}
