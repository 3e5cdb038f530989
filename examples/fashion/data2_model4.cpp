// SPDX-License-Identifier: Apache-2.0
// Fashion-MNIST on the mesh `data=2,model=4`: what the devices say to each other is known before anything runs.
#include "steps.hpp"

namespace fashion {

// Forward, one all-reduce over `model` joins the two layers' parts; nothing is gathered.
using forward = ts::lowered<predict_step, model_of<data2_model4>, images_of<data2_model4>>;
static_assert(forward::collectives().all_reduce == 1 && forward::collectives().all_gather == 0);
static_assert(forward::text().find("over model") != std::string_view::npos);
static_assert(forward::text().find("over data") == std::string_view::npos);

const char* const mesh_name = data2_model4::name;

std::unique_ptr<trainer> make_trainer(const settings& s, std::int64_t warmup, std::int64_t total) {
  return trainer_for<data2_model4>(s, warmup, total);
}

}  // namespace fashion
