// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/kernels/arch/bfloat16_tiles.hpp>

namespace {

TEST_CASE("dot-product instructions, where the processor has them, multiply tiles as the plain loop does") {
#if defined(TESSERA_HAS_BFLOAT16_TILES)
  namespace detail = tessera::kernels::detail;
  using tessera::bfloat16;
  if (!__builtin_cpu_supports("avx512bf16")) return;
  for (const std::int64_t depth : {32, 96})
    for (const std::int64_t rows : {1, 8, 17, 32})
      for (const bool accumulate : {false, true}) {
        std::vector<float> a(32 * depth), b(depth * 32), c(32 * 40, 3.0f);
        std::vector<bfloat16> packed_a(a.size()), packed_b(b.size());
        const auto tile = [&](std::int64_t line, std::int64_t step) {  // where it lies, but for the place within a row
          return line / 16 * depth * 16 + step / 32 * 512;
        };
        for (std::int64_t i = 0; i < 32; ++i)
          for (std::int64_t p = 0; p < depth; ++p) {
            a[i * depth + p] = static_cast<float>((i * 7 + p * 3) % 17 - 8);
            b[p * 32 + i] = static_cast<float>((i * 5 + p * 11) % 13 - 6);
            packed_a[tile(i, p) + i % 16 * 32 + p % 32] = bfloat16(a[i * depth + p]);
            packed_b[tile(i, p) + p % 32 / 2 * 32 + i % 16 * 2 + p % 2] = bfloat16(b[p * 32 + i]);
          }
        detail::multiply_tiles_in_vectors(depth, packed_a.data(), packed_b.data(), c.data(), 40, accumulate, rows);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < 40; ++j) {
            float expected = j < 32 && !accumulate ? 0.0f : 3.0f;
            for (std::int64_t p = 0; p < depth && j < 32; ++p) expected += a[i * depth + p] * b[p * 32 + j];
            REQUIRE(c[i * 40 + j] == expected);
          }
      }
#else
  SUCCEED("not built for such a processor");
#endif
}

}  // namespace
