// SPDX-License-Identifier: Apache-2.0
#include <support/svg_chart.hpp>

#include <catch2/catch.hpp>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using examples::chart;
using examples::scale_for;
using examples::svg_text;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

std::vector<double> points(const std::string& svg) {
  const auto begin = svg.find("points=\"") + 8;
  const std::string list = svg.substr(begin, svg.find('"', begin) - begin);
  std::vector<double> numbers;
  for (std::size_t at = 0, used = 0; at < list.size(); at += used + 1)
    numbers.push_back(std::stod(list.substr(at), &used));
  return numbers;
}

}  // namespace

TEST_CASE("an axis is marked at round values that cover its data") {
  CHECK(scale_for(0, 10, 5, true).ticks() == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(scale_for(1, 10, 8, false).ticks() == std::vector<double>{2, 4, 6, 8, 10});
  CHECK(scale_for(-0.3, 0.3, 6, true).step == Approx(0.1));
  CHECK(scale_for(0.8412, 0.8897, 6, true).decimals == 2);
  for (const double high : {1e-12, 3e-5, 0.7, 1.0, 2.3, 99.0, 12345.0, 7e20}) {
    for (const double low : {0.0, -high, high / 3}) {
      const auto scale = scale_for(low, high, 6, true);
      const auto ticks = scale.ticks();
      CHECK(ticks.front() <= low + 1e-6 * high);
      CHECK(ticks.back() >= high * (1 - 1e-6));
      CHECK(ticks.size() >= 2);
      CHECK(ticks.size() <= 9);
    }
  }
}

TEST_CASE("an axis over one value or none is still an interval") {
  for (const double value : {0.0, 5.0, -3e-9, 1e15}) {
    const auto scale = scale_for(value, value, 6, true);
    CHECK(scale.low < value);
    CHECK(scale.high > value);
    CHECK(scale.ticks().size() >= 2);
  }
  const auto nothing = scale_for(std::numeric_limits<double>::infinity(), -1, 6, true);
  CHECK(nothing.low < nothing.high);
}

TEST_CASE("points lie where their values say: right is more, up is more") {
  chart c{"t", "x", "y", {}};
  c.line("a", {0, 1, 2}, {0, 10, 5});
  const auto p = points(svg_text({c}));
  REQUIRE(p.size() == 6);
  CHECK(p[0] == Approx(70));
  CHECK(p[2] - p[0] == Approx(p[4] - p[2]));
  CHECK(p[4] == Approx(500));
  CHECK(p[1] == Approx(310));
  CHECK(p[3] == Approx(64));
  CHECK(p[5] == Approx((p[1] + p[3]) / 2));
}

TEST_CASE("every line has a colour and a legend entry; charts stand side by side") {
  chart loss{"Loss", "epoch", "loss", {}}, accuracy{"Accuracy", "epoch", "accuracy", {}};
  loss.line("train", {1, 2}, {1, 0.5});
  loss.line("test", {1, 2}, {1.1, 0.6});
  accuracy.line("test", {1, 2}, {0.7, 0.8});
  const auto svg = svg_text({loss, accuracy});
  CHECK(count(svg, "<polyline") == 3);
  CHECK(count(svg, ">train</text>") == 1);
  CHECK(count(svg, ">test</text>") == 2);
  CHECK(count(svg, ">Accuracy</text>") == 1);
  CHECK(svg.find("width=\"1040\"") != std::string::npos);
  CHECK(count(svg, "<text ") == count(svg, "</text>"));
}

TEST_CASE("a name has the same colour in every chart, and other names have others") {
  chart left{"l", "x", "y", {}}, right{"r", "x", "y", {}};
  left.line("train", {1, 2}, {1, 2});
  left.line("test", {1, 2}, {1, 3});
  right.line("test", {1, 2}, {1, 4});
  const auto svg = svg_text({left, right});
  CHECK(count(svg, "stroke=\"#0072b2\"") == 1);
  CHECK(count(svg, "stroke=\"#d55e00\"") == 2);
}

TEST_CASE("points that are not finite interrupt the line and never reach the picture") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  chart c{"t", "x", "y", {}};
  c.line("a", {0, 1, 2, 3, 4, 5}, {1, 2, nan, inf, 2, 3});
  const auto svg = svg_text({c});
  CHECK(count(svg, "<polyline") == 2);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("inf") == std::string::npos);
}

TEST_CASE("a single point is a dot, and a chart without points says so") {
  chart c{"t", "x", "y", {}};
  CHECK(svg_text({c}).find("no data") != std::string::npos);
  c.line("a", {1}, {0.5});
  CHECK(count(svg_text({c}), "<circle") == 1);
  CHECK(svg_text({c}).find("no data") == std::string::npos);
}

TEST_CASE("names may hold any character") {
  chart c{"<a> & \"b\"", "x", "y", {}};
  c.line("p<q", {1, 2}, {1, 2});
  const auto svg = svg_text({c});
  CHECK(svg.find("&lt;a&gt; &amp; &quot;b&quot;") != std::string::npos);
  CHECK(svg.find("p&lt;q") != std::string::npos);
}

TEST_CASE("x and y of different lengths are refused") {
  chart c{"t", "x", "y", {}};
  CHECK_THROWS_WITH(c.line("a", {1, 2}, {1}), "chart: line 'a' has 2 x and 1 y values");
}
