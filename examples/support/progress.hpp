// SPDX-License-Identifier: Apache-2.0
// Shows how far a training run has come: a bar on a terminal, plain lines anywhere else.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace examples {

/// What is known about a run at one moment.
struct progress_state {
  std::string label;          // "epoch 3/10"
  long done = 0;              // steps
  long total = 0;             // steps
  double items_per_step = 1;  // images in a batch
  double seconds = 0;         // since the first step
  double loss = std::numeric_limits<double>::quiet_NaN();
};

/// `1:05:09`, `5:09`; `-:--` where it is not known.
inline std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 360'000'000) return "-:--";
  const long whole = std::lround(std::ceil(seconds));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  }
  return text;
}

/// `loss 0.4321  12345 images/s  0:12 left`
inline std::string progress_figures(const progress_state& at, const std::string& items) {
  const double steps_per_second = at.seconds > 0 ? static_cast<double>(at.done) / at.seconds : 0;
  const double left = steps_per_second > 0 ? static_cast<double>(at.total - at.done) / steps_per_second
                                           : std::numeric_limits<double>::quiet_NaN();
  char text[160];
  std::snprintf(text, sizeof text, "loss %.4f  %.0f %s/s  %s left", at.loss, steps_per_second * at.items_per_step,
                items.c_str(), clock_text(left).c_str());
  return text;
}

/// One line of at most `width` characters: label, bar, percent, figures. A narrow line gives up the bar first.
inline std::string progress_line(const progress_state& at, const std::string& items, int width) {
  const double share =
      at.total > 0 ? std::clamp(static_cast<double>(at.done) / static_cast<double>(at.total), 0.0, 1.0) : 0;
  char percent[16];
  std::snprintf(percent, sizeof percent, " %3d%%  ", static_cast<int>(share * 100));
  const std::string figures = percent + progress_figures(at, items);
  const int room = width - static_cast<int>(at.label.size() + figures.size()) - 3;
  std::string line = at.label;
  if (room >= 5) {
    const auto cells = static_cast<std::size_t>(std::min(room, 40));
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(cells));
    std::string bar(filled, '=');
    if (filled < cells) bar += '>';
    bar.resize(cells, ' ');
    line += " [" + bar + "]";
  }
  line += figures;
  return line.substr(0, static_cast<std::size_t>(std::max(width, 0)));
}

/// The display of a run:
///
///     examples::progress progress{"images", steps, batch};
///     progress.label("epoch 1/10");
///     progress.step(loss);                        // after every step
///     progress.line("epoch 1: accuracy 0.85");    // a lasting line, above the bar
///
/// On a terminal the bar is redrawn in place, in one write, at most ten times a second. Elsewhere a plain line is
/// printed each time another `plain_lines`-th of the run is done, so a log stays short and holds no control characters.
/// Text that lasts and the bar go to the same stream, stderr by default; stdout is left to results.
class progress {
 public:
  progress(std::string items, long total_steps, double items_per_step, std::FILE* out = stderr, long plain_lines = 20)
      : items_{std::move(items)},
        out_{out},
        terminal_{::isatty(::fileno(out)) == 1},
        every_{std::max(1L, total_steps / std::max(1L, plain_lines))},
        begin_{clock::now()} {
    at_.total = total_steps;
    at_.items_per_step = items_per_step;
  }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() { finish(); }

  /// What stands before the bar from now on.
  void label(std::string text) { at_.label = std::move(text); }

  /// Counts one step, whose loss was `loss`.
  void step(double loss) {
    ++at_.done;
    at_.loss = loss;
    const auto now = clock::now();
    at_.seconds = std::chrono::duration<double>(now - begin_).count();
    if (!terminal_) {
      if (at_.done % every_ == 0 || at_.done == at_.total) print_plain();
    } else if (!drawn_ || at_.done == at_.total || now - last_drawn_ >= std::chrono::milliseconds{100}) {
      draw();
      last_drawn_ = now;
    }
  }

  /// Prints a line that stays.
  void line(const std::string& text) {
    put((drawn_ ? "\r\x1b[K" : "") + text + "\n");
    if (drawn_) draw();
  }

  /// Leaves the bar as it stands and ends its line; later output starts on a fresh one.
  void finish() {
    if (drawn_) put("\n");
    drawn_ = false;
  }

 private:
  using clock = std::chrono::steady_clock;

  void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
  }

  void print_plain() {
    char steps[64];
    std::snprintf(steps, sizeof steps, "  step %ld/%ld  ", at_.done, at_.total);
    put(at_.label + steps + progress_figures(at_, items_) + "\n");
  }

  // The new line is written over the old one and only what sticks out of it is cleared, so nothing flickers; the last
  // column stays free, as some terminals wrap there.
  void draw() {
    winsize size{};
    const bool known = ::ioctl(::fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    put("\r" + progress_line(at_, items_, known ? size.ws_col - 1 : 79) + "\x1b[K");
    drawn_ = true;
  }

  std::string items_;
  std::FILE* out_;
  bool terminal_;
  long every_;
  clock::time_point begin_, last_drawn_{};
  progress_state at_;
  bool drawn_ = false;
};

}  // namespace examples
