// SPDX-License-Identifier: Apache-2.0
// TESSERA_TRACE writes every step of a run on the rows of the devices and threads that took part.
#include <tessera/runtime/trace.hpp>
#include <tessera/tessera.hpp>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace ts = tessera;
using json = nlohmann::json;

namespace {

using mesh = ts::mesh<ts::axis<"data", 4>>;
inline constexpr auto step = [](auto x, auto w) {
  auto y = ts::tanh(ts::matmul(x, w));
  return ts::sum(y * y);
};

void run_step() {
  const auto x = ts::device_put<ts::shape<512, 64>, ts::P<"data">, mesh>(std::vector<float>(512 * 64, 0.5f));
  const auto w = ts::device_put<ts::shape<64, 128>, ts::P<>, mesh>(std::vector<float>(64 * 128, 0.25f));
  ts::jit<step>(x, w);
}

/// What another run of this program writes, which has `path` in TESSERA_TRACE and runs the step; its output in `said`.
void run_with_trace(const std::string& path, const std::string& said) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "TESSERA_TRACE='" + path + "' '" + self + "' '[a-step]' >'" + said + "' 2>&1";
  REQUIRE(std::system(command.c_str()) == 0);
}

struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("tessera_trace_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  ~folder() { std::filesystem::remove_all(path); }
};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a step runs", "[.][a-step]") { run_step(); }

TEST_CASE(
    "a trace has a row for each device and each thread, and kernels with their shapes, joined where they run as one") {
  const folder f;
  const auto path = f.path / "trace.json";
  run_with_trace(path.string(), (f.path / "said").string());
  std::set<int> devices_of_product, threads_of_product, devices_of_sum;
  const json trace = json::parse(content(path));
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const auto name = event.at("name").get<std::string>();
    CHECK(event.at("dur").get<double>() >= 0);
    const bool product = name.find("dot 128x128x64x1") != std::string::npos;
    CHECK(product == (name.find("{tanh mul}") != std::string::npos));
    if (product) (event.at("pid") == 0 ? devices_of_product : threads_of_product).insert(event.at("tid").get<int>());
    if (name == "all_reduce" && event.at("pid") == 0) devices_of_sum.insert(event.at("tid").get<int>());
  }
  CHECK(devices_of_product == std::set{0, 1, 2, 3});
  CHECK(devices_of_sum == std::set{0, 1, 2, 3});
  CHECK(!threads_of_product.empty());
}

TEST_CASE("a trace that cannot be written is said on the error stream, and the run is what it is without") {
  const folder f;
  const auto said = f.path / "said";
  run_with_trace((f.path / "said" / "trace.json").string(), said.string());
  CHECK_THAT(content(said), Catch::Contains("tessera: TESSERA_TRACE: cannot") && Catch::Contains("trace.json"));
}

TEST_CASE("events are written with their names, rows and times in microseconds") {
  ts::runtime::tracer trace;
  const int dot = trace.number_of("dot 2x3x4x1");
  CHECK(trace.number_of("dot 2x3x4x1") == dot);
  trace.add(dot, ts::runtime::tracer::row::device, 7, 1'234'567, 1'235'600);
  const json events = json::parse(trace.json()).at("traceEvents");
  const auto found = std::find_if(events.begin(), events.end(), [](const json& e) { return e.at("ph") == "X"; });
  REQUIRE(found != events.end());
  CHECK(found->at("name") == "dot 2x3x4x1");
  CHECK(found->at("tid") == 7);
  CHECK(found->at("ts").get<double>() == Approx(1234.567));
  CHECK(found->at("dur").get<double>() == Approx(1.033));
}
