// SPDX-License-Identifier: Apache-2.0
// Updates of 8 million parameters by SGD with momentum and by AdamW: milliseconds, bytes a second as a share of what a
// copy of as many bytes reaches, and how much faster than PyTorch's where python3-torch is installed (else
// `peer=absent`).
#include "copies.hpp"
#include "support.hpp"

#include <tessera/tessera.hpp>

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ts = tessera;

namespace {

using square = ts::nn::linear<1024, 1024>;
struct model {
  std::array<square, 8> layers;
  TESSERA_MODULE(model, layers)
};
using on_device = ts::nn::bound<model, ts::mesh<>>;

/// An update alone: gradients come in as a module of arrays.
inline constexpr auto update = [](auto& parameters, const auto& arrays, auto& optimizer) {
  ts::gradients<on_device> grads;
  const ts::optim::values from = ts::optim::values_of(arrays);
  std::size_t next = 0;
  ts::visit_variables(grads, [&](auto& v) { ts::optim::assign_one(v, from[next++]); });
  optimizer.update(parameters, grads);
};

template <class Transformation>
std::function<void()> make_step(Transformation t) {
  auto parameters = ts::init<model>(ts::nn::rngs{.params = 0});
  auto arrays = ts::init<model>(ts::nn::rngs{.params = 1});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(parameters, std::move(t));
  return [=]() mutable { ts::jit<update>(parameters, std::as_const(arrays), optimizer); };
}

/// Milliseconds of PyTorch's step, by the script beside this file.
std::optional<double> peer_milliseconds(const std::string& name) {
  const std::string command = "python3 '" TESSERA_BENCH_DIR "/optimizer_peer.py' " + name + " 2>/dev/null";
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  double milliseconds = 0;
  const int read = std::fscanf(pipe, "%lf", &milliseconds);
  pclose(pipe);
  return read == 1 ? std::optional(milliseconds) : std::nullopt;
}

}  // namespace

int main() {
  constexpr double parameters = 8 * (1024 * 1024 + 1024);
  const bench::copies copy(1 << 25);
  const std::vector<bench::contender> steps{{"sgd_momentum", make_step(ts::optim::sgd(0.1, 0.9))},
                                            {"adamw", make_step(ts::optim::adamw(1e-3))},
                                            {"copy", [&] { copy.by_memcpy(); }}};
  const bench::turns turns(steps, 9, 3);
  const double bytes[] = {20 * parameters, 28 * parameters};
  for (std::size_t i = 0; i < 2; ++i) {
    const char* const name = steps[i].name.c_str();
    std::printf("optimizer.step_ms.%s=%.3f\n", name, turns.seconds(i) * 1e3);
    std::printf("optimizer.of_copy_bandwidth.%s=%.3f\n", name, bytes[i] / copy.bytes() * turns.ratio(2, i));
    if (const auto peer = peer_milliseconds(name))
      std::printf("optimizer.speedup.%s=%.2f\n", name, *peer / (turns.seconds(i) * 1e3));
    else std::printf("optimizer.speedup.%s=peer=absent\n", name);
  }
}
