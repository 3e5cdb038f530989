// SPDX-License-Identifier: Apache-2.0
// What checkpoints cost and save in an 8-layer causal transformer of 6,299,648 parameters, and in groups of layers.
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
  std::puts("64 layers x + tanh(x W), (256, 256), a checkpoint round every k layers");
  print_row<group_job<0>>("none", 33.25);
  print_row<group_job<1>>("k = 1", 17.25);
  print_row<group_job<2>>("k = 2", 11.25);
  print_row<group_job<4>>("k = 4", 9.25);
  print_row<group_job<8>>("k = 8", 11.25);
  print_row<group_job<16>>("k = 16", 18.25);
  print_row<group_job<32>>("k = 32", 33.75);
  print_row<group_job<64>>("k = 64", 33.25);
}
