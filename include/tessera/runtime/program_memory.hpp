// SPDX-License-Identifier: Apache-2.0
// Where the blocks of a program's buffers lie while it runs: in its arenas, in arguments and results, in windows.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/core/shards.hpp>
#include <tessera/core/sixteen_bits.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/runtime/memory.hpp>
#include <tessera/runtime/storage.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace tessera::runtime {

/// The memory of one program, which every call is given again.
class program_memory {
 public:
  program_memory(const graph::program& p, const mesh_value& mesh) : devices_(mesh.devices()) {
    stride_ = aligned(p.temporary_bytes);
    arena_ = memory(stride_ * devices_);
    host_stride_ = aligned(p.host_bytes);
    host_ = memory(host_stride_ * devices_);
    fill_constants(p);
    make_offsets(p, mesh);
    bases_.resize(p.buffers.size());
    make_windows(p);
  }

  /// All bytes of the arena: that of device 0, of device 1, ...
  std::span<std::byte> arena() { return {arena_.data(), static_cast<std::size_t>(arena_.size())}; }
  std::int64_t arena_stride() const { return stride_; }

  /// All bytes that wait in host memory: those of device 0, of device 1, ...
  std::span<std::byte> host_arena() { return {host_.data(), static_cast<std::size_t>(host_.size())}; }
  std::int64_t host_stride() const { return host_stride_; }

  /// Arguments and results of the next run.
  void set_bases(const graph::program& p, std::span<storage* const> arguments, std::span<storage* const> results) {
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      const graph::buffer& buffer = p.buffers[b];
      const auto place = static_cast<std::size_t>(buffer.place);
      switch (buffer.where) {
        case graph::space::temporary: bases_[b] = arena_.data(); break;
        case graph::space::host: bases_[b] = host_.data(); break;
        case graph::space::constant: bases_[b] = constants_.data() + 8 * place; break;
        case graph::space::argument: bases_[b] = arguments[place]->bytes.data(); break;
        case graph::space::result: bases_[b] = results[place]->bytes.data(); break;
        case graph::space::rows:
        case graph::space::window:
        case graph::space::blocks: break;
      }
    }
    for (int w : still_) set_window(p, w, 0);
  }

  /// The windows that a loop moves are those of a trip.
  void set_windows(const graph::program& p, std::int64_t loop, std::int64_t trip) {
    for (int w : windows_[static_cast<std::size_t>(loop)]) set_window(p, w, trip);
  }

  std::byte* block_of(int b, std::int64_t device) const {
    return bases_[static_cast<std::size_t>(b)] +
           offsets_[static_cast<std::size_t>(b) * static_cast<std::size_t>(devices_) +
                    static_cast<std::size_t>(device)];
  }

 private:
  void fill_constants(const graph::program& p) {
    constants_ = memory(static_cast<std::int64_t>(8 * std::max<std::size_t>(p.constants.size(), 1)));
    for (const graph::buffer& b : p.buffers) {
      if (b.where != graph::space::constant) continue;
      const double value = p.constants[static_cast<std::size_t>(b.place)].value;
      std::byte* to = constants_.data() + 8 * b.place;
      switch (b.type) {
        case dtype::f32: store(to, static_cast<float>(value)); break;
        case dtype::f64: store(to, value); break;
        case dtype::i32: store(to, static_cast<std::int32_t>(value)); break;
        case dtype::u32: store(to, static_cast<std::uint32_t>(value)); break;
        case dtype::bf16: store(to, bfloat16(value)); break;
        case dtype::f16: store(to, float16(value)); break;
        default: store(to, value != 0); break;
      }
    }
  }
  template <class T>
  static void store(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof value);
  }

  /// For each buffer and device, where its block lies behind the buffer's base: in shards of a storage, in the arena of
  /// the first device that has the block, or nowhere else than at the base.
  void make_offsets(const graph::program& p, const mesh_value& mesh) {
    offsets_.resize(p.buffers.size() * static_cast<std::size_t>(devices_));
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      const graph::buffer& buffer = p.buffers[b];
      for (std::int64_t d = 0; d < devices_; ++d) {
        const std::int64_t shard = shard_of_device(d, buffer.varying, mesh);
        const graph::buffer& whole = p.buffers[static_cast<std::size_t>(p.whole_buffer(static_cast<int>(b)))];
        std::int64_t offset = 0;
        const bool on_host = whole.where == graph::space::host;
        if (on_host || whole.where == graph::space::temporary)
          offset = device_of_shard(shard, buffer.varying, mesh) * (on_host ? host_stride_ : stride_) + whole.place;
        else if (whole.where != graph::space::constant) offset = shard * aligned(whole.bytes);
        offsets_[b * static_cast<std::size_t>(devices_) + static_cast<std::size_t>(d)] = offset;
      }
    }
  }

  /// Windows by the loop whose trips move them, themselves or what they are part of; outer ones first.
  void make_windows(const graph::program& p) {
    const auto number = [&](int b) -> const graph::buffer& { return p.buffers[static_cast<std::size_t>(b)]; };
    const auto depth = [&](int b) {
      int count = 0;
      for (; number(b).where == graph::space::window; b = static_cast<int>(number(b).place)) ++count;
      return count;
    };
    windows_.resize(static_cast<std::size_t>(p.loops));
    for (int b = 0; b < static_cast<int>(p.buffers.size()); ++b) {
      if (number(b).where != graph::space::window) continue;
      int moving = b;
      while (number(moving).where == graph::space::window && number(moving).loop < 0)
        moving = static_cast<int>(number(moving).place);
      const bool moves = number(moving).where == graph::space::window;
      (moves ? windows_[static_cast<std::size_t>(number(moving).loop)] : still_).push_back(b);
    }
    const auto outer_first = [&](std::vector<int>& list) {
      std::sort(list.begin(), list.end(),
                [&](int a, int b) { return std::pair(depth(a), a) < std::pair(depth(b), b); });
    };
    outer_first(still_);
    for (std::vector<int>& list : windows_) outer_first(list);
  }

  void set_window(const graph::program& p, int w, std::int64_t trip) {
    const graph::buffer& window = p.buffers[static_cast<std::size_t>(w)];
    bases_[static_cast<std::size_t>(w)] =
        bases_[static_cast<std::size_t>(window.place)] + window.offset + (window.loop < 0 ? 0 : trip * window.stride);
  }

  std::int64_t devices_;
  std::int64_t stride_ = 0;
  std::int64_t host_stride_ = 0;
  memory arena_;
  memory host_;
  memory constants_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::byte*> bases_;
  std::vector<std::vector<int>> windows_;  ///< by loop
  std::vector<int> still_;                 ///< windows that do not move
};

}  // namespace tessera::runtime
