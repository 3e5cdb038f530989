// SPDX-License-Identifier: Apache-2.0
#include <support/csv.hpp>

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace fs = std::filesystem;

namespace {

// A folder of its own, gone with the test.
struct folder {
  fs::path path = fs::temp_directory_path() / ("tessera_csv_" + std::to_string(::getpid()));
  folder() { fs::create_directories(path); }
  ~folder() { fs::remove_all(path); }
};

std::string content(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::size_t entries(const fs::path& path) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator{path}, fs::directory_iterator{}));
}

}  // namespace

TEST_CASE("the file is a header line and one line a row, in a folder that is made for it") {
  const folder f;
  examples::csv table{f.path / "deep" / "er" / "metrics.csv", {"epoch", "loss", "note"}};
  table.row(1, 0.1f, "ok");
  table.save();
  CHECK(content(f.path / "deep/er/metrics.csv") == "epoch,loss,note\n1,0.1,ok\n");
  table.row(-2, 1e-300, std::string{"a,b \"c\"\nd"});
  CHECK(content(f.path / "deep/er/metrics.csv") == "epoch,loss,note\n1,0.1,ok\n");
  table.save();
  CHECK(content(f.path / "deep/er/metrics.csv") == "epoch,loss,note\n1,0.1,ok\n-2,1e-300,\"a,b \"\"c\"\"\nd\"\n");
  CHECK(entries(f.path / "deep/er") == 1);
}

TEST_CASE("a number reads back as itself") {
  const folder f;
  examples::csv table{f.path / "metrics.csv", {"x"}};
  for (const double x : {1.0 / 3, 6.02214076e23, std::numeric_limits<double>::denorm_min()}) {
    table.row(x);
    const auto& text = table.text();
    CHECK(std::strtod(text.c_str() + text.rfind('\n', text.size() - 2) + 1, nullptr) == x);
  }
}

TEST_CASE("a row of another length is refused and changes nothing") {
  examples::csv table{"metrics.csv", {"a", "b"}};
  CHECK_THROWS_WITH(table.row(1), "csv: metrics.csv has 2 columns, but the row has 1 values");
  CHECK_THROWS_AS(table.row(1, 2, 3), std::invalid_argument);
  CHECK(table.text() == "a,b\n");
}

TEST_CASE("a file that cannot be written is an error with its name, and leaves nothing behind") {
  const folder f;
  fs::create_directories(f.path / "taken");
  examples::csv table{f.path / "taken", {"a"}};
  CHECK_THROWS_AS(table.save(), std::runtime_error);
  CHECK(entries(f.path) == 1);
  CHECK_THROWS_WITH(tessera::write_file(f.path / "taken", "x"), Catch::Contains((f.path / "taken").string()));
  std::ofstream{f.path / "file"} << "old";
  CHECK_THROWS_WITH(tessera::write_file(f.path / "file" / "metrics.csv", "x"), Catch::Contains("metrics.csv"));
  CHECK(content(f.path / "file") == "old");
}

TEST_CASE("a reader that has the old file open keeps a whole old file") {
  const folder f;
  tessera::write_file(f.path / "x", "old content");
  std::ifstream reader{f.path / "x"};
  tessera::write_file(f.path / "x", "new");
  CHECK(std::string{std::istreambuf_iterator<char>{reader}, {}} == "old content");
  CHECK(content(f.path / "x") == "new");
}
