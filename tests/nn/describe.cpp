// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/describe.hpp>
#include <tessera/analysis/visualize.hpp>
#include <tessera/nn/linear.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/optim/optimizers.hpp>

#include <catch2/catch.hpp>

#include <array>
#include <string>
#include <tuple>

namespace ts = tessera;
using ts::none, ts::P;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

namespace {

struct own_kind {};

struct block {
  ts::nn::linear<64, 64, ts::kernel<P<none, "model">>> up;
  ts::nn::variable<ts::nn::batch_stat, ts::f32, ts::shape<64>> mean;
  TESSERA_MODULE(block, up, mean)
};

struct model {
  std::array<block, 2> layers;
  std::tuple<ts::nn::linear<64, 8>, ts::nn::variable<own_kind, ts::i32, ts::shape<>>> head;
  TESSERA_MODULE(model, layers, head)
};

}  // namespace

TEST_CASE("A module's table has a line a variable, with its path, type, role and bytes, and totals by role") {
  CHECK(ts::describe<model, cluster>() ==
        "name                 type                  role        bytes per device\n"
        "layers[0].up.kernel  float32[64,64@model]  param                   4096\n"
        "layers[0].up.bias    float32[64@model]     param                     64\n"
        "layers[0].mean       float32[64]           batch_stat               256\n"
        "layers[1].up.kernel  float32[64,64@model]  param                   4096\n"
        "layers[1].up.bias    float32[64@model]     param                     64\n"
        "layers[1].mean       float32[64]           batch_stat               256\n"
        "head[0].kernel       float32[64,8]         param                   2048\n"
        "head[0].bias         float32[8]            param                     32\n"
        "head[1]              int32[]               variable                   4\n"
        "total                8840 elements         param                  10400\n"
        "total                128 elements          batch_stat               512\n"
        "total                1 elements            variable                   4\n"
        "total                8969 elements         all                    10916\n");
}

TEST_CASE("A bound module and its optimizer describe themselves; state is named as what it belongs to") {
  const auto layer = ts::init<ts::nn::linear<8, 4>, cluster>(ts::nn::rngs{0});
  const std::string table = ts::describe(layer);
  CHECK(table ==
        "name    type          role   bytes per device\n"
        "kernel  float32[8,4]  param               128\n"
        "bias    float32[4]    param                16\n"
        "total   36 elements   param               144\n");
  const auto optimizer = ts::nn::optimizer<ts::nn::param>(layer, ts::optim::adam(1e-2));
  const std::string state = ts::describe(optimizer);
  CHECK(state.find(".mu.kernel") != std::string::npos);
  CHECK(state.find(".nu.bias") != std::string::npos);
  CHECK(state.find(".count") != std::string::npos);
  CHECK(state.find("hyperparameter") != std::string::npos);
  CHECK(state.find("transformation.") != std::string::npos);
}

TEST_CASE("A module without variables has an empty table") {
  CHECK(ts::describe<ts::optim::empty_state, cluster>() ==
        "name   type        role  bytes per device\n"
        "total  0 elements  all                  0\n");
}

TEST_CASE("A variable of an initialised module can be drawn, an empty one says what is missing") {
  const auto m = ts::init<model, cluster>(ts::nn::rngs{0});
  CHECK(ts::array_sharding_text(m.layers[0].up.kernel).find("│CPU 0,4│CPU 1,5│CPU 2,6│CPU 3,7│") != std::string::npos);
  const ts::nn::linear<8, 4> empty;
  CHECK_THROWS_WITH(ts::array_sharding_text(empty.kernel),
                    "visualize_array_sharding: the variable holds no array; initialise its module with init first");
}
