// SPDX-License-Identifier: Apache-2.0
// Line charts as an SVG picture.
#pragma once

#include <tessera/core/atomic_file.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace examples {

/// One line of a chart. Points that are not finite are left out and interrupt the line.
struct series {
  std::string name;
  std::vector<double> x, y;
};

/// A chart: a title, two labelled axes, and lines.
struct chart {
  std::string title, x_label, y_label;
  std::vector<series> lines;

  /// Adds a line; std::invalid_argument unless x and y have one length.
  void line(std::string name, std::vector<double> x, std::vector<double> y) {
    if (x.size() != y.size()) {
      throw std::invalid_argument{"chart: line '" + name + "' has " + std::to_string(x.size()) + " x and " +
                                  std::to_string(y.size()) + " y values"};
    }
    lines.push_back({std::move(name), std::move(x), std::move(y)});
  }
};

/// The interval an axis shows and the round values marked on it.
struct axis_scale {
  double low = 0, high = 1, step = 1;
  int decimals = 0;

  /// The first marked value that is not below `low`, and all up to `high`.
  std::vector<double> ticks() const {
    std::vector<double> marks;
    const auto first = std::llround(std::ceil(low / step - 1e-9)), last = std::llround(std::floor(high / step + 1e-9));
    for (auto i = first; i <= last; ++i) marks.push_back(static_cast<double>(i) * step);
    return marks;
  }
};

/// The axis for values from `low` to `high`: marks at multiples of 1, 2 or 5 times a power of ten, `about` of them or
/// fewer, its ends moved out to marks if `whole`. One single value gets an interval around it.
inline axis_scale scale_for(double low, double high, int about, bool whole) {
  if (!(low <= high)) return {0, 1, 1, 0};
  if (high - low <= 1e-12 * std::max(std::abs(low), std::abs(high))) {
    const double around = low == 0 ? 1 : std::abs(low) / 10;
    low -= around;
    high += around;
  }
  const double raw = (high - low) / about;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= raw * (1 - 1e-9)) step = factor * power;
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  if (whole) {
    low = std::floor(low / step + 1e-9) * step;
    high = std::ceil(high / step - 1e-9) * step;
  }
  return {low, high, step, decimals};
}

namespace detail {

inline std::string number(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value == 0 ? 0.0 : value);
  return text;
}

inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

inline std::string text_at(double x, double y, std::string_view attributes, std::string_view text) {
  return "<text x=\"" + number(x, 1) + "\" y=\"" + number(y, 1) + "\" " + std::string{attributes} + ">" +
         escaped(text) + "</text>\n";
}

inline std::string line_between(double x1, double y1, double x2, double y2, std::string_view colour) {
  return "<line x1=\"" + number(x1, 1) + "\" y1=\"" + number(y1, 1) + "\" x2=\"" + number(x2, 1) + "\" y2=\"" +
         number(y2, 1) + "\" stroke=\"" + std::string{colour} + "\"/>\n";
}

/// Draws one chart in a box of `width` x `height` whose left edge is at `left`. A line's colour follows from the place
/// of its name in `names`, so a name has one colour in the whole picture.
class chart_drawing {
 public:
  chart_drawing(const chart& what, const std::vector<std::string>& names, double left, double width, double height)
      : chart_{what},
        names_{names},
        x0_{left + 70},
        x1_{left + width - 20},
        y0_{height - 50},
        y1_{64},
        centre_{left + width / 2},
        x_{scale_of(&series::x, 8, false)},
        y_{scale_of(&series::y, 6, true)} {}

  std::string svg() const {
    constexpr std::string_view heading = "text-anchor=\"middle\" font-size=\"16\" font-weight=\"bold\"";
    std::string out = text_at(centre_, 24, heading, chart_.title) + axes() + legend();
    bool any = false;
    for (const auto& line : chart_.lines) {
      const std::string drawn = curve(line);
      any = any || !drawn.empty();
      out += drawn;
    }
    if (!any) out += text_at((x0_ + x1_) / 2, (y0_ + y1_) / 2, "text-anchor=\"middle\" fill=\"#666\"", "no data");
    return out;
  }

 private:
  // Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
  std::string colour(const series& line) const {
    static constexpr std::string_view colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
    const auto place = std::find(names_.begin(), names_.end(), line.name) - names_.begin();
    return std::string{colours[static_cast<std::size_t>(place) % std::size(colours)]};
  }

  axis_scale scale_of(std::vector<double> series::*values, int about, bool whole) const {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const auto& line : chart_.lines) {
      for (std::size_t i = 0; i < line.x.size(); ++i) {
        if (!std::isfinite(line.x[i]) || !std::isfinite(line.y[i])) continue;
        low = std::min(low, (line.*values)[i]);
        high = std::max(high, (line.*values)[i]);
      }
    }
    return scale_for(low, high, about, whole);
  }

  double across(double x) const { return x0_ + (x - x_.low) / (x_.high - x_.low) * (x1_ - x0_); }
  double up(double y) const { return y0_ - (y - y_.low) / (y_.high - y_.low) * (y0_ - y1_); }

  std::string axes() const {
    std::string out;
    for (const double tick : y_.ticks()) {
      out += line_between(x0_, up(tick), x1_, up(tick), "#ddd");
      out += text_at(x0_ - 8, up(tick) + 4, "text-anchor=\"end\"", number(tick, y_.decimals));
    }
    for (const double tick : x_.ticks()) {
      out += line_between(across(tick), y0_, across(tick), y0_ + 5, "#333");
      out += text_at(across(tick), y0_ + 18, "text-anchor=\"middle\"", number(tick, x_.decimals));
    }
    out += line_between(x0_, y0_, x1_, y0_, "#333") + line_between(x0_, y0_, x0_, y1_, "#333");
    out += text_at((x0_ + x1_) / 2, y0_ + 38, "text-anchor=\"middle\"", chart_.x_label);
    const double x = x0_ - 54, y = (y0_ + y1_) / 2;
    const std::string turned = "rotate(-90 " + number(x, 1) + " " + number(y, 1) + ")";
    return out + text_at(x, y, "text-anchor=\"middle\" transform=\"" + turned + "\"", chart_.y_label);
  }

  // One row between title and plot; a name takes about 7 units a character.
  std::string legend() const {
    std::string out;
    double x = x0_;
    for (const auto& line : chart_.lines) {
      out += "<rect x=\"" + number(x, 1) + "\" y=\"41\" width=\"18\" height=\"4\" fill=\"";
      out += colour(line) + "\"/>\n";
      out += text_at(x + 24, 47, "text-anchor=\"start\"", line.name);
      x += 24 + 7 * static_cast<double>(line.name.size()) + 16;
    }
    return out;
  }

  // A line of very many points is drawn thin, so that noise does not bury what lies under it.
  std::string curve(const series& line) const {
    const std::string c = colour(line);
    const std::string_view stroke = line.x.size() > 300 ? "\" stroke-width=\"0.7\"" : "\" stroke-width=\"2\"";
    std::string out, run;
    std::size_t points = 0;
    double x = 0, y = 0;
    const auto end_run = [&] {
      if (points == 1) {
        out += "<circle cx=\"" + number(x, 1) + "\" cy=\"" + number(y, 1) + "\" r=\"3\" fill=\"" + c + "\"/>\n";
      } else if (points > 1) {
        out += "<polyline points=\"" + run + "\" fill=\"none\" stroke=\"" + c + std::string{stroke} + "/>\n";
      }
      run.clear();
      points = 0;
    };
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      if (!std::isfinite(line.x[i]) || !std::isfinite(line.y[i])) {
        end_run();
        continue;
      }
      x = across(line.x[i]);
      y = up(line.y[i]);
      run += (points == 0 ? "" : " ") + number(x, 1) + "," + number(y, 1);
      ++points;
    }
    end_run();
    return out;
  }

  const chart& chart_;
  const std::vector<std::string>& names_;
  double x0_, x1_, y0_, y1_, centre_;
  axis_scale x_, y_;
};

}  // namespace detail

/// The picture: the charts side by side, 520 x 360 each, on white.
inline std::string svg_text(const std::vector<chart>& charts) {
  constexpr double width = 520, height = 360;
  const double all = width * static_cast<double>(std::max<std::size_t>(charts.size(), 1));
  const std::string size = "width=\"" + detail::number(all, 0) + "\" height=\"" + detail::number(height, 0) + "\"";
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" " + size + " viewBox=\"0 0 " + detail::number(all, 0) +
                    " " + detail::number(height, 0) + "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n";
  out += "<rect " + size + " fill=\"white\"/>\n";
  std::vector<std::string> names;
  for (const auto& each : charts)
    for (const auto& line : each.lines)
      if (std::find(names.begin(), names.end(), line.name) == names.end()) names.push_back(line.name);
  double left = 0;
  for (const auto& each : charts) {
    out += detail::chart_drawing{each, names, left, width, height}.svg();
    left += width;
  }
  return out + "</svg>\n";
}

/// Writes the picture to `path`, whole or not at all.
inline void write_svg(const std::filesystem::path& path, const std::vector<chart>& charts) {
  tessera::write_file(path, svg_text(charts));
}

}  // namespace examples
