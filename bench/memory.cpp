// SPDX-License-Identifier: Apache-2.0
// Temporary memory of the chapter's programs, in MiB: `memory.<row>=ours,xla,target`. Ours is the arena of the plan that
// the executor walks, made here at run time by the passes that `lowered` runs while it compiles. XLA's are the figures
// its authors' compiler printed on 8 simulated CPU devices (JAX 0.12), which do not depend on the machine.
#include "remat/mlp.hpp"
#include "remat/transformer.hpp"

#include <cstdio>

namespace {

namespace ts = tessera;
using ts::P;
using one = ts::mesh<>;

template <std::int64_t... Extents>
using array = ts::tensor<ts::f32, ts::shape<Extents...>, P<>, one>;

template <const auto& Step, class... Args>
void row(const char* name, double xla, double target) {
  const auto program = ts::transform::lower(ts::transform::traced<Step, Args...>::run());
  const auto facts = ts::analysis::summarise(program, one::value);
  std::printf("memory.%s=%.3f,%.3f,%.3f\n", name, static_cast<double>(facts.memory.temp_size_in_bytes) / (1 << 20), xla,
              target);
  std::printf("flops.%s=%.3f\n", name, static_cast<double>(facts.cost.flops) / 1e9);
}

using mlp_x = array<256, 256>;
using written_out = ts::nn::bound<remat::mlp_weights<16, 256, 1024>, one>;
using mlp_stack = ts::nn::bound<ts::nn::stack<16, remat::mlp_layer<256, 1024>>, one>;

void mlp_rows() {
  using namespace remat;
  row<gradient<plain_loss>, written_out, mlp_x>("mlp_unrolled.none", 83.25, 22);
  row<gradient<whole_loss>, written_out, mlp_x>("mlp_unrolled.whole", 83.25, 22);
  row<gradient<layerwise_loss>, written_out, mlp_x>("mlp_unrolled.per_layer", 37, 6.5);
  row<gradient<stack_loss<call_layer>>, mlp_stack, mlp_x>("mlp_scan.none", 88.5, 22);
  row<gradient<stack_loss<call_checkpointed<ts::everything_saveable>>>, mlp_stack, mlp_x>("mlp_scan.everything", 92.5,
                                                                                          38);
  row<gradient<stack_loss<call_checkpointed<ts::dots_saveable>>>, mlp_stack, mlp_x>("mlp_scan.dots", 25.5, 22);
  row<gradient<stack_loss<call_checkpointed<ts::nothing_saveable>>>, mlp_stack, mlp_x>("mlp_scan.nothing", 9.5, 6.25);
}

void wide_rows() {
  row<remat::wide_step<false>, array<512, 8192>, array<8192, 512>, array<64, 512>, array<64, 512>>("wide.plain", 6.125,
                                                                                                   3);
  row<remat::wide_step<true>, array<512, 8192>, array<8192, 512>, array<64, 512>, array<64, 512>>("wide.remat", 4.125,
                                                                                                  3);
}

template <auto Call>
void transformer_row(const char* name, double xla, double target) {
  using layers = ts::nn::bound<remat::transformer<8, 256, 4, 1024>, one>;
  using x = array<8, 128, 256>;
  row<remat::gradient<remat::transformer_loss<Call>>, layers, x, x>(name, xla, target);
}

void transformer_rows() {
  using namespace remat;
  transformer_row<call_layer>("transformer.none", 318.92, 100);
  transformer_row<call_checkpointed<ts::dots_saveable>>("transformer.dots", 133.04, 105);
  transformer_row<call_checkpointed<ts::dots_with_no_batch_dims_saveable>>("transformer.dots_no_batch", 108.04, 80);
  transformer_row<call_checkpointed<ts::save_only_these_names<"mlp_hidden">>>("transformer.names", 81.07, 45);
  transformer_row<call_checkpointed<ts::nothing_saveable>>("transformer.nothing", 50.07, 24);
}

template <std::int64_t K>
void group_row(const char* name, double xla, double target) {
  row<remat::grouped_gradient<K>, array<64, 256, 256>, array<256, 256>>(name, xla, target);
}

void group_rows() {
  group_row<0>("ex2.none", 33.25, 33);
  group_row<1>("ex2.1", 17.25, 17);
  group_row<2>("ex2.2", 11.25, 10);
  group_row<4>("ex2.4", 9.25, 8);
  group_row<8>("ex2.8", 11.25, 9);
  group_row<16>("ex2.16", 18.25, 14);
  group_row<32>("ex2.32", 33.75, 24);
  group_row<64>("ex2.64", 33.25, 33);
}

}  // namespace

int main() {
  mlp_rows();
  wide_rows();
  transformer_rows();
  group_rows();
}
