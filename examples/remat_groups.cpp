// SPDX-License-Identifier: Apache-2.0
// 64 layers x + tanh(x W), (256, 256), with a checkpoint round every k of them: between one layer and all of them lies
// the number that needs least. With --out DIR the curve is drawn into DIR/groups.svg.
#include "remat/table.hpp"

#include "support/args.hpp"
#include "support/svg_chart.hpp"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace {

/// Memory over the binary logarithm of k, ours and XLA's.
struct curve {
  std::vector<double> log_k, ours, xla;

  template <std::int64_t K>
  void add(double published) {
    remat::print_row<remat::group_job<K>>(("k = " + std::to_string(K)).c_str(), published);
    log_k.push_back(std::log2(static_cast<double>(K)));
    ours.push_back(remat::mib(remat::planned(remat::group_job<K>{}).memory.temp_size_in_bytes));
    xla.push_back(published);
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::string out;
  examples::args args{"remat_groups", "Prints what checkpoints round groups of layers need."};
  args.text("--out", out, "DIR", "folder for groups.svg");
  args.parse_or_exit(argc, argv);

  remat::print_head();
  remat::print_row<remat::group_job<0>>("no checkpoint", 33.25);
  curve memory;
  memory.add<1>(17.25), memory.add<2>(11.25), memory.add<4>(9.25), memory.add<8>(11.25);
  memory.add<16>(18.25), memory.add<32>(33.75), memory.add<64>(33.25);
  if (out.empty()) return 0;
  examples::chart chart{"64 layers, a checkpoint round every k", "log2 k", "temporary MiB", {}};
  chart.line("Tessera", memory.log_k, memory.ours);
  chart.line("XLA (published)", memory.log_k, memory.xla);
  examples::write_svg(std::filesystem::path(out) / "groups.svg", {chart});
}
