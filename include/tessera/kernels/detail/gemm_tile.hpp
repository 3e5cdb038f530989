// SPDX-License-Identifier: Apache-2.0
// The inner loop of matrix multiplication: one tile of C, held in registers while it runs along the depth k.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <tessera/kernels/arch/fma.hpp>
#include <tessera/kernels/detail/simd.hpp>

namespace tessera::kernels::detail {

/// A tile is at most tile_rows x (tile_vectors * width) elements: 24 of the 32 vector registers of AVX-512, 12 of 16
/// elsewhere; the rest hold one row of B and one element of A. Few rows, because those of a C whose rows are a power of
/// two long share one place in the first cache, and few loads: ten for 24 multiply-adds.
template <class T>
inline constexpr int tile_rows = 6;

template <class T>
inline constexpr int tile_vectors = sizeof(batch<T>) == 64 ? 4 : 2;

template <class T>
inline constexpr std::int64_t tile_columns = tile_vectors<T>* width<T>;

/// Calls f(0), ..., f(Count - 1) with constants: unlike a loop, leaves an array indexed by them in registers.
template <int Count, class F>
[[gnu::always_inline]] inline void unrolled(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, Count>{});
}

/// Steps of the depth between two looks of a tile at anything but its operands.
inline constexpr int steps_together = 8;

/// Memory that will be read soon. Every steps_together steps a tile asks the second cache for `lines` lines at `at`,
/// then goes `step` bytes on, so that they arrive while it computes. The first cache is full of what the tile reads.
struct gemm_ahead {
  static constexpr int lines = 4;
  static constexpr std::int64_t line = 64;  ///< bytes

  const char* at = nullptr;
  std::int64_t step = 0;
};

/// A rectangle of memory.
struct gemm_rows {
  const char* at = nullptr;
  std::int64_t rows = 0;
  std::int64_t bytes = 0;    ///< of a row
  std::int64_t leading = 0;  ///< bytes from one row to the next
};

/// At most four rectangles that will be read soon, one after the other, each from top to bottom in stripes of a few
/// lines.
class gemm_upcoming {
 public:
  void add(const gemm_rows& rows) {
    if (rows.rows > 0) queue_[count_++] = rows;
  }

  /// What to ask for during the next `depth` steps; nothing after the last rectangle.
  gemm_ahead take(std::int64_t depth) {
    if (done_ == count_) return {};
    const gemm_rows& rows = queue_[done_];
    const gemm_ahead next{rows.at + row_ * rows.leading + byte_, rows.leading};
    row_ += depth / steps_together;
    if (row_ >= rows.rows) row_ = 0, byte_ += gemm_ahead::lines * gemm_ahead::line;
    const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(rows.at) % gemm_ahead::line);
    if (byte_ >= offset + rows.bytes) byte_ = 0, ++done_;
    return next;
  }

 private:
  gemm_rows queue_[4];
  int count_ = 0;
  int done_ = 0;
  std::int64_t row_ = 0;
  std::int64_t byte_ = 0;
};

/// The depth is summed in blocks of at most this many steps, so that a panel of tile_columns of B stays in a 48 KiB
/// cache. It is the same for every type and instruction set, because it fixes the order of summation.
inline constexpr std::int64_t gemm_depth = 128;

/// The i-th of `parts` nearly equal parts of [0, n) starts here; the part after the last starts at n.
constexpr std::int64_t part(std::int64_t n, std::int64_t parts, std::int64_t i) {
  return i * (n / parts) + std::min(i, n % parts);
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Steps [start, start + depth) of the depth.
struct gemm_steps {
  std::int64_t start = 0;
  std::int64_t depth = 0;

  std::int64_t end() const { return start + depth; }
};

/// Blocks of the depth begin at multiples of so many steps, which matrix registers take at once.
inline constexpr std::int64_t depth_unit = 32;

/// How many blocks of at most `most` steps (a multiple of depth_unit) a depth is cut into, and the i-th of them. They
/// are about equally long; all but the last are whole units.
constexpr std::int64_t depth_blocks(std::int64_t depth, std::int64_t most = gemm_depth) {
  return ceil_div(depth, most);
}
constexpr gemm_steps depth_block(std::int64_t depth, std::int64_t i, std::int64_t most = gemm_depth) {
  const std::int64_t units = ceil_div(depth, depth_unit), blocks = depth_blocks(depth, most);
  const std::int64_t start = part(units, blocks, i) * depth_unit;
  return {start, std::min(part(units, blocks, i + 1) * depth_unit, depth) - start};
}

/// The i-th of those blocks as far as it is read, when only the first `read` steps are; empty behind them.
constexpr gemm_steps read_of_block(std::int64_t depth, std::int64_t read, std::int64_t i,
                                   std::int64_t most = gemm_depth) {
  if (i >= depth_blocks(depth, most)) return {};
  const gemm_steps block = depth_block(depth, i, most);
  return {block.start, std::clamp<std::int64_t>(read - block.start, 0, block.depth)};
}

/// Calls f(group, within, done) for the parts of some steps that lie in one group each, where groups of group_depth
/// steps are in a row: `within` are steps of the group, `done` come before them.
template <class F>
void for_each_part(gemm_steps steps, std::int64_t group_depth, F&& f) {
  for (std::int64_t done = 0; done < steps.depth;) {
    const std::int64_t step = steps.start + done, first = step % group_depth;
    const gemm_steps within{first, std::min(steps.depth - done, group_depth - first)};
    f(step / group_depth, within, done);
    done += within.depth;
  }
}

/// How a tile reads A: rows, a_step elements from one to the next, or steps of Rows elements, one behind the other.
enum class a_layout { rows, steps };

/// How a tile reads B: packed, or from where it lies, or from there and packing it for the tiles after this one.
enum class b_state { packed, in_place, fresh };

/// What tiles read: A, and B either packed at `panel` or, b_step elements from one step to the next, at `b`.
template <class T>
struct gemm_tile_operands {
  const T* a = nullptr;
  std::int64_t a_step = 0;
  const T* b = nullptr;
  std::int64_t b_step = 0;
  T* panel = nullptr;
};

/// c[i * c_step + j] (+)= sum over p < depth, in order, of A[i, p] * B[p, j], for i < Rows and j < Vectors * width. C
/// is asked for at the beginning. Registers are few: one a row of A, an index, and one for each other array.
template <class T, int Rows, int Vectors, a_layout Layout, b_state State>
void gemm_tile(std::int64_t depth, const gemm_tile_operands<T>& from, T* c, std::int64_t c_step, bool accumulate,
               gemm_ahead ahead) {
  constexpr bool by_rows = Layout == a_layout::rows;
  constexpr bool packs = State == b_state::fresh;
  T* panel = from.panel;
  constexpr bool unpacked = State != b_state::packed;
  const T* b = unpacked ? from.b : panel;
  const T* row[std::size_t{by_rows ? Rows : 1}]{from.a};
  if constexpr (by_rows)
    unrolled<Rows>([&](auto i) __attribute__((always_inline)) { row[i] = from.a + i * from.a_step; });
  batch<T> sum[std::size_t{Rows * Vectors}];
  unrolled<Rows * Vectors>([&](auto i) __attribute__((always_inline)) { sum[i] = batch<T>(T(0)); });
  const auto add_step = [&](std::int64_t p, const T* step_of_b, [[maybe_unused]] std::int64_t p_offset)
      __attribute__((always_inline)) {
    batch<T> right[std::size_t{Vectors}];
    unrolled<Vectors>([&](auto j) __attribute__((always_inline)) {
      right[j] = in_register(batch<T>::load_unaligned(step_of_b + j * width<T>));
      if constexpr (packs) right[j].store_unaligned(panel + p_offset + j * width<T>);
    });
    unrolled<Rows>([&](auto i) __attribute__((always_inline)) {
      const batch<T> left(by_rows ? row[by_rows ? i : 0][p] : row[0][p * Rows + i]);
      unrolled<Vectors>([&](auto j) __attribute__((always_inline)) {
        sum[i * Vectors + j] = plus_product(sum[i * Vectors + j], left, right[j]);
      });
    });
  };
  constexpr std::int64_t packed_step = Vectors * width<T>;
  const std::int64_t b_step = unpacked ? from.b_step : packed_step;
  const T* row_of_c = c;
  if (ahead.at == nullptr) ahead.at = reinterpret_cast<const char*>(c);  // to ask for what is nowhere may take long
  std::int64_t p = 0;
  for (; p <= depth - steps_together;
       p += steps_together, b += steps_together * b_step, panel += steps_together * packed_step) {
    unrolled<gemm_ahead::lines>([&](auto i) __attribute__((always_inline)) {
      __builtin_prefetch(ahead.at + i * gemm_ahead::line, 0, 2);
    });
    ahead.at += ahead.step;
    unrolled<Vectors>([&](auto j)
                          __attribute__((always_inline)) { __builtin_prefetch(row_of_c + j * width<T>, 1, 3); });
    row_of_c += p < steps_together * (Rows - 1) ? c_step : 0;
    unrolled<steps_together>([&](auto s)
                                 __attribute__((always_inline)) { add_step(p + s, b + s * b_step, s * packed_step); });
  }
  for (; p < depth; ++p, b += b_step, panel += packed_step) add_step(p, b, 0);
  unrolled<Rows>([&](auto i) __attribute__((always_inline)) {
    unrolled<Vectors>([&](auto j) __attribute__((always_inline)) {
      T* const place = c + j * width<T>;
      const batch<T> value = sum[i * Vectors + j];
      (accumulate ? batch<T>::load_unaligned(place) + value : value).store_unaligned(place);
    });
    c += c_step;
  });
}

template <class T>
using gemm_tile_function = void (*)(std::int64_t, const gemm_tile_operands<T>&, T*, std::int64_t, bool, gemm_ahead);

/// gemm_tiles<T, Layout, State>[(vectors - 1) * tile_rows + rows - 1] is the tile of that many rows and vectors.
template <class T, a_layout Layout, b_state State>
inline constexpr auto gemm_tiles = []<int... I>(std::integer_sequence<int, I...>) {
  return std::array<gemm_tile_function<T>, sizeof...(I)>{
      gemm_tile<T, I % tile_rows<T> + 1, I / tile_rows<T> + 1, Layout, State>...};
}
(std::make_integer_sequence<int, tile_rows<T> * tile_vectors<T>>{});

/// gemm_packing_tiles<T, Layout>[vectors - 1] is the tile of tile_rows rows that packs B.
template <class T, a_layout Layout>
inline constexpr auto gemm_packing_tiles = []<int... I>(std::integer_sequence<int, I...>) {
  return std::array<gemm_tile_function<T>, sizeof...(I)>{gemm_tile<T, tile_rows<T>, I + 1, Layout, b_state::fresh>...};
}
(std::make_integer_sequence<int, tile_vectors<T>>{});

/// The tile of those tables, for 1 <= rows <= tile_rows and 1 <= vectors <= tile_vectors.
template <class T, a_layout Layout>
gemm_tile_function<T> gemm_tile_of(std::int64_t rows, std::int64_t vectors, b_state state) {
  if (state == b_state::fresh) return gemm_packing_tiles<T, Layout>[static_cast<std::size_t>(vectors - 1)];
  const auto index = static_cast<std::size_t>((vectors - 1) * tile_rows<T> + rows - 1);
  return state == b_state::packed ? gemm_tiles<T, Layout, b_state::packed>[index]
                                  : gemm_tiles<T, Layout, b_state::in_place>[index];
}

/// A tile of whole vectors, of which C has `columns` columns. Not inlined: a place for its array would cost whole
/// tiles.
template <class T>
[[gnu::noinline]] void gemm_tile_padded(gemm_tile_function<T> tile, std::int64_t rows, std::int64_t columns,
                                        std::int64_t depth, const gemm_tile_operands<T>& from, T* c,
                                        std::int64_t c_step, bool accumulate, gemm_ahead ahead) {
  alignas(64) T padded[tile_rows<T> * tile_columns<T>];
  tile(depth, from, padded, tile_columns<T>, false, ahead);
  for (std::int64_t i = 0; i < rows; ++i) {
    T* const to = c + i * c_step;
    const T* const row = padded + i * tile_columns<T>;
    for (std::int64_t j = 0; j < columns; j += width<T>) {
      const batch<T> value = batch<T>::load_aligned(row + j);
      store_part(to + j, columns - j, accumulate ? load_part(to + j, columns - j, T(0)) + value : value);
    }
  }
}

/// The same for any count of columns up to tile_columns: those beyond `columns` are computed from B's padding and
/// dropped. Where B is not packed there are whole vectors, and where it is fresh tile_rows rows.
template <class T>
void gemm_tile_any(std::int64_t rows, std::int64_t columns, std::int64_t depth, a_layout layout, b_state state,
                   const gemm_tile_operands<T>& from, T* c, std::int64_t c_step, bool accumulate, gemm_ahead ahead) {
  const std::int64_t vectors = (columns + width<T> - 1) / width<T>;
  const auto tile = layout == a_layout::rows ? gemm_tile_of<T, a_layout::rows>(rows, vectors, state)
                                             : gemm_tile_of<T, a_layout::steps>(rows, vectors, state);
  if (columns == vectors * width<T>) {
    tile(depth, from, c, c_step, accumulate, ahead);
    return;
  }
  gemm_tile_padded(tile, rows, columns, depth, from, c, c_step, accumulate, ahead);
}

}  // namespace tessera::kernels::detail
