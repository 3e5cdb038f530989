// SPDX-License-Identifier: Apache-2.0
#include <support/progress.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include <fcntl.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

using examples::progress_line;
using examples::progress_state;

namespace {

std::string all_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

std::size_t count(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

// The two ends of a terminal of a given width, whose output is passed on as it is.
struct terminal {
  int screen = -1;
  std::FILE* program = nullptr;

  explicit terminal(unsigned short columns) {
    int end = -1;
    termios raw{};
    ::cfmakeraw(&raw);
    const winsize size{24, columns, 0, 0};
    REQUIRE(::openpty(&screen, &end, nullptr, &raw, &size) == 0);
    program = ::fdopen(end, "w");
    REQUIRE(::fcntl(screen, F_SETFL, O_NONBLOCK) == 0);
  }
  ~terminal() {
    std::fclose(program);
    ::close(screen);
  }
  std::string seen() const {
    std::string text;
    char part[4096];
    for (ssize_t n; (n = ::read(screen, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(n));
    return text;
  }
};

}  // namespace

TEST_CASE("a line shows label, share, loss, speed and time left") {
  const progress_state at{"epoch 3/10", 30, 120, 256, 2.0, 0.43211};
  CHECK(progress_line(at, "images", 120) ==
        "epoch 3/10 [==========>                             ]  25%  loss 0.4321  3840 images/s  0:06 left");
}

TEST_CASE("a line never exceeds the width and gives up the bar first") {
  const progress_state at{"epoch 3/10", 30, 120, 256, 2.0, 0.43211};
  for (int width = 0; width < 120; ++width) CHECK(progress_line(at, "images", width).size() <= std::size_t(width));
  CHECK(progress_line(at, "images", 61) == "epoch 3/10  25%  loss 0.4321  3840 images/s  0:06 left");
}

TEST_CASE("a line before the first step and after the last is well formed") {
  CHECK(progress_line({"run", 0, 10, 1, 0, std::numeric_limits<double>::quiet_NaN()}, "images", 60)
            .ends_with("0 images/s  -:-- left"));
  CHECK(progress_line({"run", 10, 10, 1, 5, 0.5}, "images", 120).find("=] 100%") != std::string::npos);
  CHECK(progress_line({"run", 0, 0, 1, 0, 0.5}, "images", 80).find("0%") != std::string::npos);
}

TEST_CASE("times are printed as a clock") {
  CHECK(examples::clock_text(0) == "0:00");
  CHECK(examples::clock_text(59.2) == "1:00");
  CHECK(examples::clock_text(3909) == "1:05:09");
  CHECK(examples::clock_text(-1) == "-:--");
  CHECK(examples::clock_text(std::numeric_limits<double>::infinity()) == "-:--");
}

TEST_CASE("a file gets few plain lines, the last step's among them, and no control characters") {
  std::FILE* file = std::tmpfile();
  {
    examples::progress progress{"images", 1000, 256, file, 10};
    progress.label("epoch 1/1");
    for (int i = 0; i < 1000; ++i) progress.step(1.0);
    progress.line("epoch 1: accuracy 0.85");
  }
  const auto text = all_of(file);
  std::fclose(file);
  CHECK(count(text, '\n') == 11);
  CHECK(count(text, '\r') == 0);
  CHECK(count(text, '\x1b') == 0);
  CHECK(text.find("epoch 1/1  step 100/1000  loss 1.0000") == 0);
  CHECK(text.find("step 1000/1000") != std::string::npos);
  CHECK(text.ends_with("epoch 1: accuracy 0.85\n"));
}

TEST_CASE("a run of fewer steps than lines prints one line a step") {
  std::FILE* file = std::tmpfile();
  {
    examples::progress progress{"images", 3, 1, file, 10};
    for (int i = 0; i < 3; ++i) progress.step(1.0);
  }
  CHECK(count(all_of(file), '\n') == 3);
  std::fclose(file);
}

TEST_CASE("a terminal's bar stays on one line that fits, is drawn rarely and ends with a fresh line") {
  const terminal t{60};
  {
    examples::progress progress{"images", 100'000, 256, t.program};
    progress.label("epoch 1/1");
    for (int i = 0; i < 100'000; ++i) progress.step(1.0);
  }
  const auto text = t.seen();
  CHECK(count(text, '\n') == 1);
  CHECK(text.ends_with("\x1b[K\n"));
  const auto draws = count(text, '\r');
  CHECK(draws >= 2);
  CHECK(draws <= 40);
  for (auto at = text.find('\r'); at != std::string::npos; at = text.find('\r', at + 1))
    CHECK(text.find("\x1b[K", at) - at - 1 <= 59);
  CHECK(text.find("100%") != std::string::npos);
}

TEST_CASE("a lasting line on a terminal replaces the bar, which is drawn again below it") {
  const terminal t{80};
  {
    examples::progress progress{"images", 2, 1, t.program};
    progress.step(1.0);
    progress.line("accuracy 0.85");
  }
  const auto text = t.seen();
  CHECK(text.find("\r\x1b[Kaccuracy 0.85\n\r") != std::string::npos);
  CHECK(text.ends_with("\x1b[K\n"));
}
