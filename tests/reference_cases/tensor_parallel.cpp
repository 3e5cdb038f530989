// SPDX-License-Identifier: Apache-2.0
// Section 6.8: a two-layer MLP on one device, on a data x model grid, and with weights that are whole only while they
// are used: the same training, and no collective that was not asked for.
#include "support.hpp"

#include <catch2/catch.hpp>

namespace tensor_parallel {

using namespace cases;

/// One device.
struct alone {
  using mesh = ts::mesh<>;
  using rows = P<>;
  using first = P<>;
  using second = P<>;
  static constexpr auto whole(const auto& weight) { return ts::reshard<P<>>(weight); }
};

/// The batch in two, the first weight by columns and the second by rows in four.
struct grid {
  using mesh = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
  using rows = P<"data">;
  using first = P<none, "model">;
  using second = P<"model">;
  static constexpr const auto& whole(const auto& weight) { return weight; }
};

/// Batch, weights and state in eight; a weight is gathered where it is used.
struct fsdp {
  using mesh = ts::mesh<ts::axis<"fsdp", 8>>;
  using rows = P<"fsdp">;
  using first = P<"fsdp">;
  using second = P<"fsdp">;
  static constexpr auto whole(const auto& weight) { return ts::reshard<P<>>(weight); }
};

/// relu(x w1) w2
template <class Layout>
struct mlp {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<64, 256>, typename Layout::first> w1;
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<256, 64>, typename Layout::second> w2;
  TESSERA_MODULE(mlp, w1, w2)

  constexpr auto operator()(auto x) {
    auto h = ts::relu(ts::matmul(x, Layout::whole(w1)));
    return ts::matmul(h, Layout::whole(w2), ts::out_sharding<typename Layout::rows>);
  }
};

inline constexpr auto forward = [](auto& model, auto x) { return model(x); };

inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };

inline constexpr auto train_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [l, grads] = ts::value_and_grad(loss)(model, x, y);
  optimizer.update(model, grads);
  return l;
};

template <class Layout>
using batch_of = ts::tensor<ts::f32, ts::shape<32, 64>, typename Layout::rows, typename Layout::mesh>;
template <class Layout>
using model_of = ts::nn::bound<mlp<Layout>, typename Layout::mesh>;

/// The optimiser that a transformation becomes for a layout's model.
template <class Layout, class Transformation>
using optimizer_of =
    decltype(ts::nn::optimizer<ts::nn::param>(std::declval<const model_of<Layout>&>(), std::declval<Transformation>()));
using adam = decltype(ts::optim::adam(1e-2));
using momentum = decltype(ts::optim::sgd(0.1, 0.9));

template <class Layout, class Transformation>
using step_of =
    ts::lowered<train_step, model_of<Layout>, optimizer_of<Layout, Transformation>, batch_of<Layout>, batch_of<Layout>>;
template <class Layout>
using forward_of = ts::lowered<forward, model_of<Layout>, batch_of<Layout>>;

// All-reduces, all-gathers, reduce-scatters.
static_assert(only(step_of<alone, adam>::collectives(), 0, 0, 0));
static_assert(only(forward_of<grid>::collectives(), 1, 0, 0));
static_assert(only(step_of<grid, adam>::collectives(), 2, 0, 0));
static_assert(only(step_of<grid, momentum>::collectives(), 2, 0, 0));
static_assert(only(forward_of<fsdp>::collectives(), 0, 2, 0));
static_assert(only(step_of<fsdp, adam>::collectives(), 1, 2, 2));

// Where nothing is gathered for good, the all-reduce of the loss is four bytes.
static_assert(step_of<fsdp, adam>::collectives().all_reduce_bytes == 4);

template <class Layout>
model_of<Layout> published_model() {
  auto model = ts::init<mlp<Layout>, typename Layout::mesh>(ts::nn::rngs{0});
  load(model.w1, "s6_8_w1.npy");
  load(model.w2, "s6_8_w2.npy");
  return model;
}

template <class Layout>
batch_of<Layout> batch(const std::string& file) {
  return ts::device_put<ts::shape<32, 64>, typename Layout::rows, typename Layout::mesh>(
      reference::load_npy<float>(file));
}

/// Five steps from the published weights.
struct training {
  std::vector<double> losses;
  std::vector<double> w1, w2;
  std::vector<double> parameters;
};
template <class Layout, class Transformation>
training train(Transformation transformation) {
  training result;
  auto model = published_model<Layout>();
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, transformation);
  const auto x = batch<Layout>("s6_8_x.npy"), y = batch<Layout>("s6_8_y.npy");
  for (int i = 0; i < 5; ++i) result.losses.push_back(ts::jit<train_step>(model, optimizer, x, y).item());
  result.w1 = norm_and_sum(model.w1);
  result.w2 = norm_and_sum(model.w2);
  result.parameters = elements(model);
  return result;
}

/// relu(x w1) w2 in double precision, by plain loops.
std::vector<double> forward_in_double() {
  const auto x = reference::load_npy<float>("s6_8_x.npy"), w1 = reference::load_npy<float>("s6_8_w1.npy"),
             w2 = reference::load_npy<float>("s6_8_w2.npy");
  std::vector<double> out(32 * 64);
  for (std::size_t row = 0; row < 32; ++row)
    for (std::size_t unit = 0; unit < 256; ++unit) {
      double h = 0;
      for (std::size_t i = 0; i < 64; ++i) h += double{x(row, i)} * double{w1(i, unit)};
      for (std::size_t j = 0; j < 64; ++j) out[row * 64 + j] += std::max(h, 0.0) * double{w2(unit, j)};
    }
  return out;
}

reference::json summary(const std::vector<double>& array) {
  double sum = 0, largest = 0;
  for (const double x : array) sum += x, largest = std::max(largest, std::abs(x));
  return {{"row0[0:4]", {array[0], array[1], array[2], array[3]}}, {"sum", sum}, {"absmax", largest}};
}

template <class Layout>
std::vector<double> forward_by_jit() {
  auto model = published_model<Layout>();
  const std::vector<float> out = ts::jit<forward>(model, batch<Layout>("s6_8_x.npy")).to_vector();
  return {out.begin(), out.end()};
}

/// Bytes of parameters and of what mirrors them in an optimiser's state: of whole arrays, and on one device.
struct state_bytes {
  std::int64_t all = 0;
  std::int64_t device = 0;
};
template <class Layout, class Transformation>
constexpr state_bytes model_and_moments() {
  using Mesh = typename Layout::mesh;
  state_bytes bytes;
  const auto add = [&]<class V>(const V&) {
    constexpr ts::aval type = ts::resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
    bytes.all += type.bytes();
    bytes.device += ts::local_block(type, Mesh::value).bytes();
  };
  const model_of<Layout> model{};
  const typename optimizer_of<Layout, Transformation>::state_type state{};
  ts::nn::visit_kind<ts::nn::param>(model, add);
  ts::nn::visit_kind<ts::nn::param>(state, add);
  return bytes;
}

constexpr state_bytes fsdp_state = model_and_moments<fsdp, adam>();
static_assert(fsdp_state.all == 384 * ts::KiB && fsdp_state.device == 48 * ts::KiB);

// The step asks a device for no more than that, its rows of x and y, and seven numbers: Adam's five, the rate and the
// count; all but rows and the six constant numbers is updated in place.
static_assert(step_of<fsdp, adam>::memory_analysis().argument_size_in_bytes == 48 * ts::KiB + 2 * ts::KiB + 7 * 4);
static_assert(step_of<fsdp, adam>::memory_analysis().alias_size_in_bytes == 48 * ts::KiB + 4);

}  // namespace tensor_parallel

using namespace tensor_parallel;

TEST_CASE("the forward pass in double precision is the reference's, and the grid's is near it") {
  const std::vector<double> exact = forward_in_double();
  CHECK(reference::check("tp_forward_reference", summary(exact)));
  for (const std::vector<double>& computed : {forward_by_jit<grid>(), forward_by_jit<fsdp>()}) {
    CHECK(reference::check("tp_forward_reference", summary(computed)));
    CHECK(reference::check("tp_forward_error", largest_difference(computed, exact)));
  }
}

TEST_CASE("five steps of Adam give the reference's last loss on every layout, and parameters within Adam's noise") {
  const auto transformation = [] { return ts::optim::adam(1e-2); };
  const training single = train<alone>(transformation()), split = train<grid>(transformation()),
                 gathered = train<fsdp>(transformation());
  CHECK(reference::check("adam5_last_loss", single.losses.back()));
  CHECK(reference::check("tp_adam_loss", split.losses.back()));
  CHECK(reference::check("tp_adam_param_diff", largest_difference(split.parameters, single.parameters)));
  CHECK(reference::check("adam5_last_loss", gathered.losses.back()));
  CHECK(reference::check("tp_adam_param_diff", largest_difference(gathered.parameters, single.parameters)));
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(split.losses[i] == Approx(single.losses[i]).epsilon(2e-5));
    CHECK(gathered.losses[i] == Approx(single.losses[i]).epsilon(2e-5));
  }
}

TEST_CASE("five steps of momentum give the reference's losses and weights on every layout, and the same parameters") {
  const auto transformation = [] { return ts::optim::sgd(0.1, 0.9); };
  const training single = train<alone>(transformation()), split = train<grid>(transformation()),
                 gathered = train<fsdp>(transformation());
  for (const training& run : {single, split, gathered})
    CHECK(reference::check("momentum5_losses_and_params",
                           reference::json{{"losses", run.losses}, {"w1", run.w1}, {"w2", run.w2}}));
  CHECK(reference::check("tp_momentum_param_diff", largest_difference(split.parameters, single.parameters)));
  CHECK(reference::check("tp_momentum_param_diff", largest_difference(gathered.parameters, single.parameters)));
}

TEST_CASE("the grid's training step has the reference's collectives") {
  CHECK(reference::check("tp_collectives", collectives<step_of<grid, adam>>()));
}

TEST_CASE("a device of eight keeps an eighth of parameters and Adam's state") {
  const auto kib = [](std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(ts::KiB); };
  CHECK(
      reference::check("fsdp_kib_global_and_device", std::vector<double>{kib(fsdp_state.all), kib(fsdp_state.device)}));
  // What is counted is what is stored.
  auto model = published_model<fsdp>();
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-2));
  std::int64_t stored = 0;
  const auto add = [&](const auto& v) { stored += v.data->block_bytes; };
  ts::nn::visit_kind<ts::nn::param>(model, add);
  ts::nn::visit_kind<ts::nn::param>(optimizer.state, add);
  CHECK(stored == fsdp_state.device);
}
