// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST on the mesh `data=8`.
#include "steps.hpp"

namespace fashion {

const char* const mesh_name = data8::name;

std::unique_ptr<trainer> make_trainer(const settings& s, std::int64_t warmup, std::int64_t total) {
  return trainer_for<data8>(s, warmup, total);
}

}  // namespace fashion
