// SPDX-License-Identifier: Apache-2.0
// Bytes of the arena in use at each step of a program, and the buffers that are there at the peak.
#pragma once

#include <tessera/analysis/svg.hpp>
#include <tessera/core/text.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/graph/step_text.hpp>
#include <tessera/transform/lifetimes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::analysis {

/// Bytes of one device's arena by step, or of what it has of the host's memory; a step of a loop's body stands for all
/// trips. Buffers that lie in an argument or a result are not in the arena.
struct live_bytes {
  graph::list<std::int64_t> by_step{};
  int peak = -1;  ///< the first step with most bytes, or -1 of a program without steps
  graph::list<int>
      at_peak{};  ///< the buffers then, largest first; of two where one takes over the other's place, the new one

  constexpr std::int64_t peak_bytes() const { return peak < 0 ? 0 : by_step[static_cast<std::size_t>(peak)]; }

  constexpr live_bytes(const graph::program& p, const transform::lifetimes& lives,
                       graph::space where = graph::space::temporary) {
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
      by_step.push_back(covered(p, live_at(p, lives, i, where)));
      if (by_step.back() > peak_bytes()) peak = i;
    }
    if (peak < 0 && !p.steps.empty()) peak = 0;
    if (peak < 0) return;
    for (int b : live_at(p, lives, peak, where))
      if (at_peak.empty() || buffer(p, at_peak.back()).place != buffer(p, b).place) at_peak.push_back(b);
      else at_peak.back() = b;
    std::sort(at_peak.begin(), at_peak.end(), [&](int a, int b) {
      return buffer(p, a).bytes != buffer(p, b).bytes ? buffer(p, a).bytes > buffer(p, b).bytes : a < b;
    });
  }

  static constexpr const graph::buffer& buffer(const graph::program& p, int b) {
    return p.buffers[static_cast<std::size_t>(b)];
  }

  /// The buffers of the arena that hold something in step `i`: by place, and at one place by birth.
  static constexpr graph::list<int> live_at(const graph::program& p, const transform::lifetimes& lives, int i,
                                            graph::space where = graph::space::temporary) {
    graph::list<int> live;
    for (int b = 0; b < static_cast<int>(p.buffers.size()); ++b)
      if (const auto at = static_cast<std::size_t>(b); buffer(p, b).where == where && buffer(p, b).bytes > 0 &&
                                                       lives.born[at] >= 0 && lives.born[at] <= i &&
                                                       i <= lives.dies[at])
        live.push_back(b);
    std::sort(live.begin(), live.end(), [&](int a, int b) {
      if (buffer(p, a).place != buffer(p, b).place) return buffer(p, a).place < buffer(p, b).place;
      const int born_a = lives.born[static_cast<std::size_t>(a)], born_b = lives.born[static_cast<std::size_t>(b)];
      return born_a != born_b ? born_a < born_b : a < b;
    });
    return live;
  }

  /// Bytes that lie in at least one of these buffers, which are sorted by place.
  static constexpr std::int64_t covered(const graph::program& p, const graph::list<int>& live) {
    std::int64_t bytes = 0, end = 0;
    for (int b : live) {
      const std::int64_t from = std::max(end, buffer(p, b).place), to = buffer(p, b).place + buffer(p, b).bytes;
      bytes += std::max<std::int64_t>(to - from, 0);
      end = std::max(end, to);
    }
    return bytes;
  }
};

/// `12.5 MiB`: to a tenth, rounded down.
constexpr text_buffer size_text(std::int64_t bytes) {
  constexpr std::string_view units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  int unit = 0;
  std::int64_t scale = 1;
  while (unit < 4 && bytes / scale >= 1024) ++unit, scale *= 1024;
  text_buffer out;
  out << bytes / scale;
  if (const std::int64_t tenths = bytes % scale * 10 / scale; unit > 0 && tenths > 0) out << "." << tenths;
  return out << units[unit];
}

/// The step that writes buffer `b` first: within a loop or a branch the one that does it, not the control step.
constexpr int first_writer(const graph::program& p, int b) {
  int found = -1;
  for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    for (int a = s.first + s.sources; a < s.first + s.sources + s.results; ++a) {
      const int to = p.accesses[static_cast<std::size_t>(a)].buffer;
      if (to < 0 || p.whole_buffer(to) != b) continue;
      if (!graph::is_control(s.kind)) return i;
      if (found < 0) found = i;
    }
  }
  return found;
}

/// `float32[4194304] of dot 256x1024x256 in scan of 16`: what is in buffer `b`, counted in elements, and the step that
/// makes it.
constexpr text_buffer buffer_text(const graph::program& p, int b) {
  const graph::buffer& held = live_bytes::buffer(p, b);
  text_buffer out;
  out << info(held.type).name << "[" << held.bytes / info(held.type).size << "]";
  const int made = first_writer(p, b);
  if (made < 0) return out;
  out << " of ";
  graph::write_step(out, p, made);
  for (int i = made - 1; i >= 0; --i) {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    if (!graph::is_control(s.kind) || i + graph::steps_inside(s) < made) continue;
    out << " in " << about(s.kind).name;
    if (s.kind == graph::step_kind::scan) out << " of " << s.sizes[graph::trips];
  }
  return out;
}

/// How many buffers a timeline names.
inline constexpr std::size_t named_buffers = 8;

/// What a timeline draws: heights, and a line of text for each step and for each of the largest buffers at the peak.
struct drawn_timeline {
  std::int64_t arena = 0;
  live_bytes live;
  graph::list<std::string> steps{};
  graph::list<std::string> largest{};

  explicit drawn_timeline(const graph::program& p) : arena(p.temporary_bytes), live(p, transform::lifetimes(p)) {
    graph::list<std::int64_t> ends;  // of the control steps around a step
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
      while (!ends.empty() && ends.back() < i) ends.pop_back();
      text_buffer line;
      for (std::size_t depth = 0; depth < ends.size(); ++depth) line << "  ";
      graph::write_step(line, p, i);
      steps.emplace_back(line.view());
      const graph::step& s = p.steps[static_cast<std::size_t>(i)];
      if (graph::is_control(s.kind)) ends.push_back(i + graph::steps_inside(s));
    }
    for (int b : live.at_peak)
      if (largest.size() < named_buffers)
        largest.push_back(std::string(size_text(live_bytes::buffer(p, b).bytes).view()) + "  " +
                          std::string(buffer_text(p, b).view()));
  }

  std::string headline() const {
    std::string text = "peak " + std::to_string(live.peak_bytes()) + " of " + std::to_string(arena) + " bytes";
    return live.peak < 0 ? text : text + " in step " + std::to_string(live.peak);
  }
};

inline std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

/// One line a step: its number, bytes in use, a bar, what it does; then the peak and the largest buffers there.
inline std::string timeline_text(const graph::program& p) {
  constexpr std::int64_t bar = 32;
  const drawn_timeline drawn(p);
  const std::size_t number = std::to_string(p.steps.size()).size(), bytes = std::to_string(drawn.arena).size();
  std::string text;
  for (std::size_t i = 0; i < drawn.steps.size(); ++i) {
    const std::int64_t used = drawn.live.by_step[i];
    const std::int64_t marks = drawn.arena == 0 ? 0 : used * bar / drawn.arena;
    text += padded(std::to_string(i), number) + "  " + padded(std::to_string(used), bytes) + "  " +
            std::string(static_cast<std::size_t>(marks), '#') +
            std::string(static_cast<std::size_t>(bar - marks), ' ') + "  " + drawn.steps[i] + "\n";
  }
  text += drawn.headline() + "\n";
  for (const std::string& line : drawn.largest) text += "  " + line + "\n";
  return text;
}

/// The same as the text of an SVG file: a column a step, as high as its bytes, with the step's line as its title; loops
/// are shaded.
inline std::string timeline_svg(const graph::program& p) {
  constexpr std::int64_t width = 960, height = 240, margin = 10, line = 18;
  const drawn_timeline drawn(p);
  const auto number = [](std::int64_t n) { return "\"" + std::to_string(n) + "\""; };
  const auto count = std::max<std::int64_t>(static_cast<std::int64_t>(p.steps.size()), 1);
  const std::int64_t top = margin + line, below = top + height + line;
  const auto left_of = [&](std::int64_t step) { return margin + step * width / count; };
  const auto column = [&](std::int64_t first, std::int64_t last, std::int64_t high, const char* look) {
    return "<rect x=" + number(left_of(first)) + " y=" + number(top + height - high) +
           " width=" + number(std::max<std::int64_t>(left_of(last + 1) - left_of(first), 1)) +
           " height=" + number(high) + look;
  };
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=" + number(width + 2 * margin) +
                    " height=" + number(below + line * static_cast<std::int64_t>(drawn.largest.size()) + margin) +
                    " font-family=\"monospace\" font-size=\"13\">\n<text x=" + number(margin) +
                    " y=" + number(margin + 10) + ">" + escaped(drawn.headline()) + "</text>\n";
  for (const transform::loop_span& loop : transform::lifetimes(p).loops)
    svg += column(loop.first, loop.last, height, " fill=\"black\" fill-opacity=\"0.08\"/>\n");
  for (std::size_t i = 0; i < drawn.steps.size(); ++i) {
    const std::int64_t used = drawn.live.by_step[i];
    const auto step = static_cast<std::int64_t>(i);
    svg += column(step, step, drawn.arena == 0 ? 0 : used * height / drawn.arena,
                  step == drawn.live.peak ? " fill=\"#d55e00\">" : " fill=\"#56b4e9\">");
    svg += "<title>" + escaped(std::to_string(i) + ": " + std::string(size_text(used).view()) + ", " + drawn.steps[i]) +
           "</title></rect>\n";
  }
  svg += "<rect x=" + number(margin) + " y=" + number(top) + " width=" + number(width) + " height=" + number(height) +
         " fill=\"none\" stroke=\"black\"/>\n";
  for (std::size_t i = 0; i < drawn.largest.size(); ++i)
    svg += "<text x=" + number(margin) + " y=" + number(below + line * static_cast<std::int64_t>(i)) + ">" +
           escaped(drawn.largest[i]) + "</text>\n";
  return svg + "</svg>\n";
}

}  // namespace tessera::analysis
