// SPDX-License-Identifier: Apache-2.0
// The program: trains on Fashion-MNIST, tests after each epoch, writes metrics and curves. Which mesh it trains on is
// decided by the file it is linked with.
#include "data.hpp"
#include "support/args.hpp"
#include "support/csv.hpp"
#include "support/progress.hpp"
#include "support/svg_chart.hpp"
#include "trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tbb/global_control.h>

namespace fashion {
namespace {

settings read_settings(int argc, char** argv) {
  settings s;
  s.mesh = mesh_name;
  examples::args args("fashion", "Trains a 784-256-128-10 classifier on Fashion-MNIST with AdamW.");
  args.choice("--mesh", s.mesh, {mesh_name}, "devices; each mesh is a program of its own, examples/run.sh picks it");
  args.number("--epochs", s.epochs, 1, 1000, "passes over the training images");
  args.number("--seed", s.seed, 0, 4294967295U, "of parameters and shuffles");
  args.number("--threads", s.threads, 0, 1024, "threads to use, 0 for all");
  args.number("--holdout", s.holdout, 0, 30000,
              "train without the last N training images and test on them instead of the test set");
  args.text("--out", s.out, "DIR", "folder for metrics.csv and curves.svg");
  args.number("--peak-rate", s.peak_rate, 1e-6, 1.0, "learning rate after warm-up");
  args.number("--weight-decay", s.weight_decay, 0.0, 1.0, "of AdamW");
  args.parse_or_exit(argc, argv);
  return s;
}

/// Samples that are trained on and tested on, as ranges of a set.
struct split {
  const tessera::io::labelled_images& train;
  std::size_t train_count;
  const tessera::io::labelled_images& test;
  std::size_t test_first;
  std::size_t test_last;
};

split make_split(const tessera::io::fashion_mnist& data, std::size_t holdout) {
  const auto trained = static_cast<std::size_t>(data.train.count());
  if (holdout > 0) return {data.train, trained - holdout, data.train, trained - holdout, trained};
  return {data.train, trained, data.test, 0, static_cast<std::size_t>(data.test.count())};
}

/// The share of test samples whose largest logit is their label's. The last batch is padded; padding does not count.
double accuracy(trainer& model, const split& data) {
  host_batch host(batch, pixels);
  std::size_t right = 0;
  const std::vector<std::uint32_t> order = sample_order(data.test_first, data.test_last);
  for (std::size_t at = 0; at < order.size(); at += batch) {
    const std::size_t count = std::min<std::size_t>(batch, order.size() - at);
    fill(host, data.test, std::span(order).subspan(at, count));
    const std::vector<float> logits = model.logits(host);
    for (std::size_t row = 0; row < count; ++row) {
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row * classes);
      right += std::max_element(first, first + classes) - first == host.labels[row];
    }
  }
  return static_cast<double>(right) / static_cast<double>(order.size());
}

/// Losses and accuracies as they come.
struct history {
  std::vector<double> loss_step, loss, epoch, accuracy;

  void save(const settings& s, std::int64_t steps_an_epoch) const {
    examples::chart losses{"Training loss", "epoch", "cross entropy", {}};
    std::vector<double> at;
    for (double step : loss_step) at.push_back(step / static_cast<double>(steps_an_epoch));
    losses.line("loss", at, loss);
    examples::chart accuracies{
        s.holdout > 0 ? "Accuracy on held-out images" : "Test accuracy", "epoch", "share right", {}};
    accuracies.line("accuracy", epoch, accuracy);
    examples::write_svg(std::filesystem::path(s.out) / "curves.svg", {losses, accuracies});
  }
};

int train(const settings& s) {
  std::optional<tbb::global_control> threads;
  if (s.threads > 0) threads.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(s.threads));

  const tessera::io::fashion_mnist files = tessera::io::load_fashion_mnist();
  const split data = make_split(files, s.holdout);
  const std::int64_t steps = static_cast<std::int64_t>(data.train_count) / batch;
  const std::int64_t total = steps * s.epochs;

  const std::unique_ptr<trainer> model = make_trainer(s, std::min<std::int64_t>(steps, total / 2), total);

  examples::csv metrics(std::filesystem::path(s.out) / "metrics.csv",
                        {"epoch", "loss", "accuracy", "images_per_second"});
  metrics.save();  // a folder that cannot be written to is refused before training
  examples::progress progress("images", total, batch);
  progress.line("mesh " + s.mesh + ", " + std::to_string(steps) + " steps of " + std::to_string(batch) +
                " images an epoch; the last " + std::to_string(data.train_count % batch) +
                " of each shuffle are dropped");
  history seen;
  host_batch host(batch, pixels);
  double training_seconds = 0;
  for (std::int64_t epoch = 0; epoch < s.epochs; ++epoch) {
    progress.label("epoch " + std::to_string(epoch + 1) + "/" + std::to_string(s.epochs));
    const auto order = sample_order(
        0, data.train_count,
        tessera::random::fold_in(tessera::random::make_key(s.seed), static_cast<std::uint32_t>(epoch + 1)));
    double sum = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t step = 0; step < steps; ++step) {
      fill(host, data.train, std::span(order).subspan(static_cast<std::size_t>(step * batch), batch));
      const double loss_here = model->step(host);
      sum += loss_here;
      seen.loss_step.push_back(static_cast<double>(epoch * steps + step));
      seen.loss.push_back(loss_here);
      progress.step(loss_here);
    }
    training_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double share = accuracy(*model, data);
    const double images_per_second = static_cast<double>((epoch + 1) * steps * batch) / training_seconds;
    seen.epoch.push_back(static_cast<double>(epoch + 1));
    seen.accuracy.push_back(share);
    metrics.row(epoch + 1, sum / static_cast<double>(steps), share, images_per_second);
    metrics.save();
    char line[128];
    std::snprintf(line, sizeof line, "epoch %lld: loss %.4f, accuracy %.4f", static_cast<long long>(epoch + 1),
                  sum / static_cast<double>(steps), share);
    progress.line(line);
  }
  progress.finish();
  seen.save(s, steps);
  std::printf("result example=fashion mesh=%s epochs=%lld test_accuracy=%.4f images_per_second=%.0f\n", s.mesh.c_str(),
              static_cast<long long>(s.epochs), seen.accuracy.back(),
              static_cast<double>(total * batch) / training_seconds);
  return 0;
}

}  // namespace

/// Errors are said in one line.
int run(int argc, char** argv) {
  try {
    return train(read_settings(argc, argv));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "fashion: %s\n", failure.what());
    return 1;
  }
}

}  // namespace fashion

int main(int argc, char** argv) { return fashion::run(argc, argv); }
