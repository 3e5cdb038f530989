// SPDX-License-Identifier: Apache-2.0
// Trains one small network with six optimisers, 500 steps each: a table, and loss curves as an SVG picture.
#include <race/race.hpp>
#include <support/args.hpp>
#include <support/svg_chart.hpp>

#include <cmath>
#include <cstdio>

int main(int argc, char** argv) {
  int steps = 500;
  unsigned seed = 42;
  std::string out = "optimizer_race.svg";
  examples::args args("optimizer_race", "Trains a 16-128-128-128-1 network on one batch with six optimisers.");
  args.number("--steps", steps, 60, 100'000, "steps of each optimiser");
  args.number("--seed", seed, 0U, 4294967295U, "of the batch and the first parameters");
  args.text("--out", out, "FILE", "the picture");
  args.parse_or_exit(argc, argv);

  const race::problem given = race::drawn(seed);
  examples::chart curves{"Training loss", "step", "log10 of the mean squared error", {}};
  std::printf("%-14s %12s %12s %14s %12s\n", "optimiser", "first loss", "final loss", "state/params", "ms a step");
  for (const race::contender& one : race::contenders()) {
    const race::outcome seen = one.run(given, steps);
    std::printf("%-14s %12.4f %12.2e %14.3f %12.3f\n", one.name.c_str(), seen.losses.front(), seen.losses.back(),
                seen.state_bytes, 1e3 * seen.seconds / steps);
    std::vector<double> at, height;
    for (std::size_t i = 0; i < seen.losses.size(); ++i)
      at.push_back(static_cast<double>(i)), height.push_back(std::log10(seen.losses[i]));
    curves.line(one.name, at, height);
  }
  examples::write_svg(out, {curves});
  std::printf("curves: %s\n", out.c_str());
}
