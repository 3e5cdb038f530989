// SPDX-License-Identifier: Apache-2.0
#include "nn/layer_cases.hpp"

#include <tessera/graph/paths.hpp>

using namespace layer_cases;

namespace {

using f64 = ts::param_dtype<ts::f64>;
inline constexpr auto& step = weighted<call>;

void check_same(const ts::graph::graph& sharded, const ts::graph::graph& whole) {
  const auto inputs = draw_inputs(whole, 5);
  check_close(run(sharded, inputs), run(whole, inputs), 1e-13);
}

}  // namespace

TEST_CASE("embed: rows of the table by number, and logits of all rows") {
  using layer = ts::nn::embed<5, 4, f64>;
  static constexpr auto round_trip = [](auto& m, auto ids) { return m.attend(m(ids)); };
  using ids = array<ts::shape<2, 3>, ts::i32>;
  const auto g = trace<weighted<round_trip>, layer, array<ts::shape<2, 3, 5>>, ids>();
  const auto inputs = draw_inputs(g, 5);
  numbers expected;
  for (const double id : inputs[2])
    for (std::size_t row = 0; row < 5; ++row) {
      double sum = 0;
      for (std::size_t f = 0; f < 4; ++f)
        sum += inputs[0][static_cast<std::size_t>(id) * 4 + f] * inputs[0][row * 4 + f];
      expected.push_back(sum);
    }
  const auto found = run(g, inputs);
  check_close({found.back()}, {expected}, 1e-14);
  runtime_test::question q{g, {g.parameters[0]}, inputs};
  q.g.outputs.resize(2);
  runtime_test::check_gradients(q);
  auto outside = inputs;
  outside[2][1] = 5;
  CHECK_THROWS_AS(run(g, outside), ts::index_error);

  using features_cut = ts::nn::embed<5, 4, f64, ts::embedding<P<none, "model">>>;
  using cut_ids = array<ts::shape<2, 3>, ts::i32, P<"data">, cluster>;
  const auto plain = trace<step, layer, array<ts::shape<2, 3, 4>>, ids>();
  check_same(trace<step, features_cut, array<ts::shape<2, 3, 4>, ts::f64, P<>, cluster>, cut_ids>(), plain);
  using even = ts::nn::embed<6, 4, f64>;
  using rows_cut = ts::nn::embed<6, 4, f64, ts::embedding<P<"model">>>;
  check_same(trace<step, rows_cut, array<ts::shape<2, 3, 4>, ts::f64, P<>, cluster>, cut_ids>(),
             trace<step, even, array<ts::shape<2, 3, 4>>, ids>());
}

TEST_CASE("embed starts with the variance 1 / features") {
  const auto table = ts::nn::to_vector(ts::init<ts::nn::embed<200, 64>>(ts::nn::rngs{0}).embedding);
  double squares = 0;
  for (const double x : table) squares += x * x;
  CHECK(squares / static_cast<double>(table.size()) == Approx(1.0 / 64).epsilon(0.05));
}

TEST_CASE("linear_general sums over several dimensions, on a mesh too") {
  using layer = ts::nn::linear_general<ts::shape<2, 3>, ts::shape<4, 2>, f64>;
  using x = array<ts::shape<2, 2, 3>>;
  using w = array<ts::shape<2, 4, 2>>;
  const auto g = trace<step, layer, w, x>();
  const auto inputs = draw_inputs(g);
  numbers expected;
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t o = 0; o < 8; ++o) {
      expected.push_back(inputs[1][o]);
      for (std::size_t i = 0; i < 6; ++i) expected.back() += inputs[3][6 * n + i] * inputs[0][8 * i + o];
    }
  check_close({run(g, inputs).back()}, {expected}, 1e-14);
  check_differences(g, inputs);
  using inputs_cut = ts::nn::linear_general<ts::shape<2, 3>, ts::shape<4, 2>, f64, ts::kernel<P<"model">>>;
  using outputs_cut = ts::nn::linear_general<ts::shape<2, 3>, ts::shape<4, 2>, f64, ts::kernel<P<none, none, "model">>>;
  using cut_x = array<ts::shape<2, 2, 3>, ts::f64, P<"data", "model">, cluster>;
  using rows = array<ts::shape<2, 2, 3>, ts::f64, P<"data">, cluster>;
  using cut_w = array<ts::shape<2, 4, 2>, ts::f64, P<>, cluster>;
  check_same(trace<step, inputs_cut, cut_w, cut_x>(), g);
  check_same(trace<step, outputs_cut, cut_w, rows>(), g);
}

TEST_CASE("the fans of linear_general are products over all dimensions of a side") {
  const auto kernel =
      ts::nn::to_vector(ts::init<ts::nn::linear_general<ts::shape<64>, ts::shape<4, 16>>>(ts::nn::rngs{0}).kernel);
  const auto flat = ts::nn::to_vector(ts::init<ts::nn::linear<64, 64>>(ts::nn::rngs{0}).kernel);
  CHECK((kernel == flat));
}

TEST_CASE("conv: a product over windows and a bias") {
  using layer = ts::nn::conv<2, 3, ts::shape<2, 2>, ts::strides_t<2, 1>, f64>;
  using x = array<ts::shape<2, 4, 3, 2>>;
  using w = array<ts::shape<2, 2, 3, 3>>;
  const auto g = trace<step, layer, w, x>();
  const auto inputs = draw_inputs(g);
  numbers expected;
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        for (std::size_t o = 0; o < 3; ++o) {
          expected.push_back(inputs[1][o]);
          for (std::size_t k = 0; k < 2; ++k)
            for (std::size_t l = 0; l < 2 && j + l < 3; ++l)
              for (std::size_t c = 0; c < 2; ++c)
                expected.back() +=
                    inputs[3][((n * 4 + 2 * i + k) * 3 + j + l) * 2 + c] * inputs[0][((k * 2 + l) * 2 + c) * 3 + o];
        }
  check_close({run(g, inputs).back()}, {expected}, 1e-14);
  check_differences(g, inputs);
  using cut_x = array<ts::shape<2, 4, 3, 2>, ts::f64, P<"data">, cluster>;
  using cut_w = array<ts::shape<2, 2, 3, 3>, ts::f64, P<>, cluster>;
  check_same(trace<step, layer, cut_w, cut_x>(), g);
}

TEST_CASE("mlp: layers with an activation between, cut in pairs") {
  using layer = ts::nn::mlp<ts::shape<3, 6, 4, 2>, ts::tanh, f64>;
  using x = array<ts::shape<4, 3>>;
  using w = array<ts::shape<4, 2>>;
  const auto g = trace<step, layer, w, x>();
  const auto inputs = draw_inputs(g);
  numbers h = inputs[7];
  const std::size_t widths[] = {3, 6, 4, 2};
  for (std::size_t i = 0; i < 3; ++i) {
    numbers y;
    for (std::size_t n = 0; n < 4; ++n)
      for (std::size_t o = 0; o < widths[i + 1]; ++o) {
        double sum = inputs[2 * i + 1][o];
        for (std::size_t k = 0; k < widths[i]; ++k) sum += h[n * widths[i] + k] * inputs[2 * i][k * widths[i + 1] + o];
        y.push_back(i < 2 ? std::tanh(sum) : sum);
      }
    h = y;
  }
  check_close({run(g, inputs).back()}, {h}, 1e-14);
  check_differences(g, inputs);
  using cut_layer = ts::nn::mlp<ts::shape<3, 6, 4, 2>, ts::tanh, f64, ts::tensor_parallel<"model">>;
  using cut_x = array<ts::shape<4, 3>, ts::f64, P<"data">, cluster>;
  using cut_w = array<ts::shape<4, 2>, ts::f64, P<>, cluster>;
  const auto sharded = trace<step, cut_layer, cut_w, cut_x>();
  check_same(sharded, g);
}

TEST_CASE("sequential, list and dict hold layers, whose paths name them") {
  using towers = ts::nn::dict<ts::nn::entry<"image", ts::nn::list<2, ts::nn::linear<3, 3, f64>>>,
                              ts::nn::entry<"words", ts::nn::sequential<ts::nn::linear<3, 4, f64>, ts::nn::fn<ts::tanh>,
                                                                        ts::nn::rms_norm<4, f64>>>>;
  static constexpr auto both = [](auto& m, auto x) {
    auto h = x;
    for (const auto& layer : m.template at<"image">()) h = layer(h);
    return m.template at<"words">()(h);
  };
  const auto g = trace<weighted<both>, towers, array<ts::shape<2, 4>>, array<ts::shape<2, 3>>>();
  check_differences(g, draw_inputs(g));
  std::vector<std::string> paths;
  const towers model{};
  ts::visit_paths(model, [&](const ts::member_path& path, const auto&) { paths.emplace_back(path.view()); });
  CHECK(paths == std::vector<std::string>{"image[0].kernel", "image[0].bias", "image[1].kernel", "image[1].bias",
                                          "words.layers[0].kernel", "words.layers[0].bias", "words.layers[2].scale"});
}

TEST_CASE("pools: NaN stays in the windows that hold it, backward too") {
  using layer = ts::nn::sequential<ts::nn::max_pool<ts::shape<2, 1>, ts::strides_t<2, 1>>, ts::nn::rms_norm<1, f64>>;
  static constexpr auto pooled = [](auto& m, auto x) {
    return std::get<0>(m.layers)(x) + ts::nn::avg_pool<ts::shape<2, 1>, ts::strides_t<2, 1>>{}(x);
  };
  const auto g = trace<weighted<pooled>, layer, array<ts::shape<1, 2, 1, 1>>, array<ts::shape<1, 4, 1, 1>>>();
  const auto found = run(g, {{1}, {1, 1}, {3, 5, 7, std::nan("")}});
  CHECK(found.back()[0] == 9);
  CHECK(std::isnan(found.back()[1]));
  CHECK(found[2][0] == 0.5);
  CHECK(found[2][1] == 1.5);
}

TEST_CASE("empty-batch: layers give empty results, and zero gradients to their parameters") {
  using layer = ts::nn::sequential<ts::nn::linear<3, 4, f64>, ts::nn::fn<ts::gelu>, ts::nn::layer_norm<4, f64>>;
  const auto g = trace<step, layer, array<ts::shape<0, 4>>, array<ts::shape<0, 3>>>();
  const auto found = run(g, draw_inputs(g));
  CHECK(found.back().empty());
  CHECK(found[0] == numbers{0});
  CHECK(found[1] == numbers(12));
  CHECK(found[3] == numbers(4));
}
