// SPDX-License-Identifier: Apache-2.0
// The Fashion-MNIST classifier of the examples on its three meshes: the same losses, and no collective unasked for.
#include <fashion/data.hpp>
#include <fashion/model.hpp>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace {

using namespace fashion;
namespace io = tessera::io;

template <class Layout>
using mesh_of = typename Layout::mesh;
template <class Layout, class Transformation>
using optimizer_of =
    decltype(ts::nn::optimizer<ts::nn::param>(std::declval<const model_of<Layout>&>(), std::declval<Transformation>()));

/// How the example trains, and how this test compares meshes.
using clipped_adamw = decltype(ts::optim::chain(
    ts::optim::clip_by_global_norm(1.0), ts::optim::adamw(ts::optim::warmup_cosine_decay_schedule(0, 1e-3, 1, 2))));
using momentum = decltype(ts::optim::sgd(0.05, 0.9));

template <class Layout, class Transformation>
using step_of = ts::lowered<train_step, model_of<Layout>, optimizer_of<Layout, Transformation>, images_of<Layout>,
                            labels_of<Layout>>;
template <class Layout>
using forward_of = ts::lowered<predict_step, model_of<Layout>, images_of<Layout>>;

/// The mesh axes of a program's collectives in the order they run, as `all_reduce model, all_gather data`.
template <class Layout, class Program>
constexpr ts::text_buffer collectives() {
  ts::text_buffer out;
  const ts::graph::program p = Program::program();
  for (const ts::graph::step& s : p.steps) {
    if (!ts::graph::is_collective(s.kind)) continue;
    if (out.size > 0) out << ", ";
    out << (s.kind == ts::graph::step_kind::all_reduce   ? "all_reduce"
            : s.kind == ts::graph::step_kind::all_gather ? "all_gather"
                                                         : "reduce_scatter");
    for (int i = 0; i < ts::axis_count(s.axes); ++i) out << " " << mesh_of<Layout>::value.name(ts::axis_at(s.axes, i));
  }
  return out;
}

static_assert(collectives<one, forward_of<one>>().view() == "");
static_assert(collectives<one, step_of<one, clipped_adamw>>().view() == "");

static_assert(collectives<data8, forward_of<data8>>().view() == "");
static_assert(collectives<data8, step_of<data8, clipped_adamw>>().view() == "all_reduce data");

// Forward, then gradients and loss, then the squares of the gradients that are cut: nothing is gathered.
static_assert(collectives<data2_model4, forward_of<data2_model4>>().view() == "all_reduce model");
static_assert(collectives<data2_model4, step_of<data2_model4, clipped_adamw>>().view() ==
              "all_reduce model, all_reduce data, all_reduce model");
static_assert(collectives<data2_model4, step_of<data2_model4, momentum>>().view() ==
              "all_reduce model, all_reduce data");

io::fashion_mnist load() {
  try {
    return io::load_fashion_mnist();
  } catch (const ts::error& missing) {
    FAIL("needs the package dataset-fashion-mnist, which cmake/setup.sh installs: " << missing.what());
    throw;
  }
}

/// The losses of some steps, and all parameters after them.
struct training {
  std::vector<double> losses;
  std::vector<float> parameters;
};

/// The first steps on shuffled training images.
template <class Layout>
training train(const io::labelled_images& images, std::uint32_t seed, std::size_t steps) {
  auto model = ts::init<classifier<Layout>, mesh_of<Layout>>(ts::nn::rngs{.params = seed});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::sgd(0.05, 0.9));
  const auto order =
      sample_order(0, static_cast<std::size_t>(images.count()), ts::random::fold_in(ts::random::make_key(seed), 1));
  host_batch host(batch, pixels);
  training result;
  for (std::size_t step = 0; step < steps; ++step) {
    fill(host, images, std::span(order).subspan(step * batch, batch));
    const auto x = ts::device_put<ts::shape<batch, pixels>, typename Layout::rows, mesh_of<Layout>>(host.images);
    const auto y = ts::device_put<ts::shape<batch>, typename Layout::rows, mesh_of<Layout>>(host.labels);
    result.losses.push_back(ts::jit<train_step>(model, optimizer, x, y).item());
  }
  ts::visit_variables(model, [&](const auto& v) {
    for (const float element : ts::nn::to_vector(v)) result.parameters.push_back(element);
  });
  return result;
}

/// The step where two runs are farthest apart, and by how much of the loss.
struct distance {
  double relative = 0;
  std::size_t step = 0;
};
distance farthest(const std::vector<double>& from, const std::vector<double>& to) {
  distance worst;
  for (std::size_t step = 0; step < from.size(); ++step) {
    const double relative = std::abs(to[step] - from[step]) / std::abs(from[step]);
    if (!(relative <= worst.relative)) worst = {relative, step};
    if (std::isnan(relative)) break;
  }
  return worst;
}

}  // namespace

// At this rate a difference in the last bit of one weight grows to a thousandth of the loss in 100 steps. So the losses
// can only agree because sums over the batch and over split features are taken in one order on every mesh.
TEST_CASE("the same seed gives the same losses on all three meshes to 1e-5 over the first 100 steps") {
  constexpr std::size_t steps = 100;
  const io::fashion_mnist data = load();
  const auto agree = [](const char* mesh, const training& expected, const training& got) {
    const distance worst = farthest(expected.losses, got.losses);
    INFO("mesh " << mesh << ", step " << worst.step << ": loss " << got.losses[worst.step] << " instead of "
                 << expected.losses[worst.step]);
    CHECK(worst.relative <= 1e-5);
    CHECK((got.parameters == expected.parameters));
  };
  std::vector<double> last;
  for (const std::uint32_t seed : {0U, 1U, 2U}) {
    INFO("seed " << seed);
    const training expected = train<one>(data.train, seed, steps);
    REQUIRE(expected.losses.size() == steps);
    agree(data8::name, expected, train<data8>(data.train, seed, steps));
    agree(data2_model4::name, expected, train<data2_model4>(data.train, seed, steps));
    // The runs are worth comparing: they learn, and each seed takes another way.
    CHECK(expected.losses.back() < 0.5 * expected.losses.front());
    CHECK(expected.losses != last);
    last = expected.losses;
  }
}
