// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/visualize.hpp>
#include <tessera/runtime/tensor.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace ts = tessera;
using ts::none, ts::P;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

template <class Spec, class Shape = ts::shape<8, 8>, class Mesh = cluster>
using array = ts::tensor<ts::f32, Shape, Spec, Mesh>;

TEST_CASE("A replicated array is one box with all devices") {
  CHECK(ts::array_sharding_text<array<P<>>>() ==
        "┌───────────────────────┐\n"
        "│                       │\n"
        "│                       │\n"
        "│                       │\n"
        "│                       │\n"
        "│  CPU 0,1,2,3,4,5,6,7  │\n"
        "│                       │\n"
        "│                       │\n"
        "│                       │\n"
        "│                       │\n"
        "└───────────────────────┘\n");
}

TEST_CASE("Rows cut over one axis are boxes one below the other, each with the devices along the other axis") {
  CHECK(ts::array_sharding_text<array<P<"data">>>() ==
        "┌───────────────────────┐\n"
        "│                       │\n"
        "│      CPU 0,1,2,3      │\n"
        "│                       │\n"
        "│                       │\n"
        "├───────────────────────┤\n"
        "│                       │\n"
        "│      CPU 4,5,6,7      │\n"
        "│                       │\n"
        "│                       │\n"
        "└───────────────────────┘\n");
}

TEST_CASE("Columns cut over one axis are boxes side by side") {
  CHECK(ts::array_sharding_text<array<P<none, "model">>>() ==
        "┌───────┬───────┬───────┬───────┐\n"
        "│       │       │       │       │\n"
        "│       │       │       │       │\n"
        "│       │       │       │       │\n"
        "│       │       │       │       │\n"
        "│CPU 0,4│CPU 1,5│CPU 2,6│CPU 3,7│\n"
        "│       │       │       │       │\n"
        "│       │       │       │       │\n"
        "│       │       │       │       │\n"
        "│       │       │       │       │\n"
        "└───────┴───────┴───────┴───────┘\n");
}

TEST_CASE("Both dimensions cut are a grid of boxes") {
  CHECK(ts::array_sharding_text<array<P<"data", "model">>>() ==
        "┌───────┬───────┬───────┬───────┐\n"
        "│       │       │       │       │\n"
        "│ CPU 0 │ CPU 1 │ CPU 2 │ CPU 3 │\n"
        "│       │       │       │       │\n"
        "│       │       │       │       │\n"
        "├───────┼───────┼───────┼───────┤\n"
        "│       │       │       │       │\n"
        "│ CPU 4 │ CPU 5 │ CPU 6 │ CPU 7 │\n"
        "│       │       │       │       │\n"
        "│       │       │       │       │\n"
        "└───────┴───────┴───────┴───────┘\n");
}

TEST_CASE("One dimension cut over two axes is cut by the major axis first") {
  CHECK(ts::array_sharding_text<array<P<ts::axes<"data", "model">>>>() ==
        "┌───────────────────────┐\n"
        "│         CPU 0         │\n"
        "├───────────────────────┤\n"
        "│         CPU 1         │\n"
        "├───────────────────────┤\n"
        "│         CPU 2         │\n"
        "├───────────────────────┤\n"
        "│         CPU 3         │\n"
        "├───────────────────────┤\n"
        "│         CPU 4         │\n"
        "├───────────────────────┤\n"
        "│         CPU 5         │\n"
        "├───────────────────────┤\n"
        "│         CPU 6         │\n"
        "├───────────────────────┤\n"
        "│         CPU 7         │\n"
        "└───────────────────────┘\n");
  const std::string swapped = ts::array_sharding_text<array<P<ts::axes<"model", "data">>>>();
  CHECK(swapped.find("CPU 4") < swapped.find("CPU 1"));
}

TEST_CASE("An array of one dimension is one row") {
  const std::string drawing = ts::array_sharding_text<array<P<"model">, ts::shape<16>>>();
  CHECK(drawing.find("│CPU 0,4│CPU 1,5│CPU 2,6│CPU 3,7│\n") != std::string::npos);
  CHECK(drawing.substr(0, drawing.find('\n')) == "┌───────┬───────┬───────┬───────┐");
}

TEST_CASE("A box is as wide as its longest label and no array makes a drawing wider than 80 characters") {
  using many = ts::mesh<ts::axis<"x", 64>>;
  const std::string replicated = ts::array_sharding_text<array<P<>, ts::shape<64, 2>, many>>();
  CHECK(replicated.find("│CPU 0,1,2,") != std::string::npos);
  CHECK(replicated.find(",62,63│\n") != std::string::npos);
  const std::string wide = ts::array_sharding_text<array<P<none, "model">, ts::shape<8, 4096>>>();
  CHECK(wide.substr(0, wide.find("┬")).size() == 3 + 3 * (80 / 4 - 2));
}

TEST_CASE("An array without elements and one on one device are drawn") {
  CHECK(ts::array_sharding_text<array<P<>, ts::shape<0, 3>, ts::mesh<>>>().find(" CPU 0 ") != std::string::npos);
  CHECK(ts::array_sharding_text<array<P<"data">, ts::shape<0>>>().find("│CPU 0,1,2,3│CPU 4,5,6,7│") !=
        std::string::npos);
}

TEST_CASE("A tensor is drawn as its type is") {
  CHECK(ts::array_sharding_text(array<P<"data">>{}) == ts::array_sharding_text<array<P<"data">>>());
}

namespace {

/// The elements of an XML text: its names in order, each closed; throws unless tags are balanced.
std::vector<std::string> elements(const std::string& xml) {
  std::vector<std::string> all, open;
  for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    REQUIRE(end != std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    REQUIRE(tag.find('<') == std::string::npos);
    REQUIRE(std::count(tag.begin(), tag.end(), '"') % 2 == 0);
    const std::string name = tag.substr(tag[0] == '/' ? 1 : 0, tag.find_first_of(" /", 1) - (tag[0] == '/' ? 1 : 0));
    if (tag[0] == '/') {
      REQUIRE_FALSE(open.empty());
      REQUIRE(open.back() == name);
      open.pop_back();
    } else {
      all.push_back(name);
      if (tag.back() != '/') open.push_back(name);
    }
  }
  REQUIRE(open.empty());
  return all;
}

}  // namespace

TEST_CASE("The picture is well-formed and has one rectangle and one label a block, below the type") {
  const std::string svg = ts::array_sharding_svg<array<P<"data", "model">>>();
  const std::vector<std::string> found = elements(svg);
  CHECK(found.front() == "svg");
  CHECK(std::count(found.begin(), found.end(), "rect") == 8);
  CHECK(std::count(found.begin(), found.end(), "text") == 9);
  CHECK(svg.find(">float32[8@data,8@model]<") != std::string::npos);
  CHECK(svg.find(">CPU 7<") != std::string::npos);
}

TEST_CASE("An axis may be called what it likes in a picture") {
  using odd = ts::mesh<ts::axis<"<a&b>", 2>>;
  const std::string svg = ts::array_sharding_svg<array<P<"<a&b>">, ts::shape<8, 8>, odd>>();
  CHECK(elements(svg).size() == 1 + 1 + 4);
  CHECK(svg.find("float32[8@&lt;a&amp;b&gt;,8]") != std::string::npos);
}
