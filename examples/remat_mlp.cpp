// SPDX-License-Identifier: Apache-2.0
// What checkpoints cost and save in a 16-layer residual MLP: memory and FLOPs as the plan has them.
#include "remat/table.hpp"

int main() {
  using namespace remat;
  std::puts("16 layers x + gelu(x W1) W2, x (256, 256), W1 (256, 1024); gradient for the weights");
  print_head();
  constexpr auto names = call_checkpointed<ts::save_only_these_names<"pre_act">>;
  print_row<scan_job<call_layer>>("no checkpoint", 88.5);
  print_row<scan_job<call_checkpointed<ts::everything_saveable>>>("everything_saveable", 92.5);
  print_row<scan_job<call_checkpointed<ts::dots_saveable>>>("dots_saveable", 25.5);
  print_row<scan_job<names>>("save_only_these_names(\"pre_act\")", 25.5);
  print_row<scan_job<call_checkpointed<ts::nothing_saveable>>>("nothing_saveable", 9.5);
  std::puts("written out, layer after layer");
  print_row<unrolled_job<plain_loss>>("no checkpoint", 83.25);
  print_row<unrolled_job<whole_loss>>("one checkpoint round the whole", 83.25);
  print_row<unrolled_job<layerwise_loss>>("one checkpoint a layer", 37.0);
}
