// SPDX-License-Identifier: Apache-2.0
#include <tessera/runtime/xtensor.hpp>

#include <catch2/catch.hpp>

#include <xtensor/xnpy.hpp>

#include <cstdio>
#include <filesystem>
#include <vector>

namespace ts = tessera;
using ts::none, ts::P;

namespace {

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

template <class Host>
void fill(Host& host) {
  for (std::size_t i = 0; i < host.size(); ++i) host.data()[i] = static_cast<float>(i);
}

}  // namespace

TEST_CASE("an xarray goes to a mesh and comes back the same, however it is cut") {
  xt::xarray<float> host = xt::zeros<float>({8, 12});
  fill(host);
  const auto check = [&](const auto& on_mesh) {
    const bool as_array = ts::to_xarray(on_mesh) == host;
    const bool as_tensor = ts::to_xtensor(on_mesh) == host;
    CHECK(as_array);
    CHECK(as_tensor);
  };
  check(ts::device_put<ts::shape<8, 12>, P<>, cluster>(host));
  check(ts::device_put<ts::shape<8, 12>, P<"data", "model">, cluster>(host));
  check(ts::device_put<ts::shape<8, 12>, P<ts::axes<"model", "data">>, cluster>(host));
  check(ts::device_put<ts::shape<8, 12>, P<none, "model">, cluster>(host));
}

TEST_CASE("an xtensor_fixed brings its extents along") {
  xt::xtensor_fixed<float, xt::xshape<8, 12>> host;
  fill(host);
  const auto on_mesh = ts::device_put<P<"data">, cluster>(host);
  static_assert(ts::type_text<decltype(ts::device_put<P<"data">, cluster>(host))>() == "float32[8@data,12]");
  CHECK(on_mesh.to_vector() == std::vector<float>(host.data(), host.data() + host.size()));
}

TEST_CASE("a host array of other extents, or not row-major, is refused with its extents") {
  const xt::xarray<float> turned = xt::zeros<float>({12, 8});
  CHECK_THROWS_WITH((ts::device_put<ts::shape<8, 12>, P<>, cluster>(turned)),
                    Catch::Contains("[12,8]") && Catch::Contains("float32[8,12]"));
  const xt::xarray<float, xt::layout_type::column_major> columns = xt::zeros<float>({8, 12});
  CHECK_THROWS_AS((ts::device_put<ts::shape<8, 12>, P<>, cluster>(columns)), ts::shape_error);
  const std::vector<float> few(95);
  CHECK_THROWS_WITH((ts::device_put<ts::shape<8, 12>, P<>, cluster>(few)),
                    Catch::Contains("95 elements") && Catch::Contains("96"));
}

TEST_CASE("16-bit numbers lie in .npy files as their bits, and come back") {
  const auto check = []<ts::dtype D>(std::integral_constant<ts::dtype, D>) {
    std::vector<ts::storage_t<D>> host;
    for (const int bits : {0x3f80, 0x8000, 0x0001, 0x7f80, 0x7fc1, 0x7c00})
      host.push_back(ts::storage_t<D>::from_bits(static_cast<std::uint16_t>(bits)));
    const auto x = ts::device_put<ts::shape<2, 3>, P<>, ts::mesh<>>(host);
    const std::string file = (std::filesystem::temp_directory_path() / "tessera_sixteen_bits.npy").string();
    xt::dump_npy(file, ts::to_bits(x));
    const auto read = ts::from_bits<D>(xt::load_npy<std::uint16_t>(file));
    CHECK(std::filesystem::file_size(file) == 128 + 6 * 2);
    std::filesystem::remove(file);
    const auto y = ts::device_put<ts::shape<2, 3>, P<>, ts::mesh<>>(read);
    const auto found = y.to_vector();
    for (std::size_t i = 0; i < host.size(); ++i) CHECK(found[i].bits() == host[i].bits());
    CHECK(read.shape(1) == 3);
  };
  check(std::integral_constant<ts::dtype, ts::bf16>{});
  check(std::integral_constant<ts::dtype, ts::f16>{});
}
