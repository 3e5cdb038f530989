// SPDX-License-Identifier: Apache-2.0
#include <support/args.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct settings {
  int epochs = 10;
  std::uint64_t seed = 0;
  double rate = 0.5;
  std::string out = "out";
  std::string mesh = "data=8";
  bool help = false;
};

settings parsed(const std::vector<std::string_view>& words) {
  settings s;
  examples::args args{"fashion", "Trains."};
  args.number("--epochs", s.epochs, 1, 1000, "passes over the data");
  args.number("--seed", s.seed, 0, std::numeric_limits<std::uint64_t>::max(), "seed of every random number");
  args.number("--rate", s.rate, 0, 1, "learning rate");
  args.text("--out", s.out, "DIR", "where results go");
  args.choice("--mesh", s.mesh, {"one", "data=8", "data=2,model=4"}, "devices");
  s.help = args.parse(words);
  return s;
}

std::string complaint(const std::vector<std::string_view>& words) {
  try {
    parsed(words);
  } catch (const examples::usage_error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("options set their variables and leave the others alone") {
  const auto s = parsed({"--epochs", "3", "--mesh=data=2,model=4", "--seed", "18446744073709551615", "--rate=1e-3"});
  CHECK(s.epochs == 3);
  CHECK(s.mesh == "data=2,model=4");
  CHECK(s.seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(s.rate == 1e-3);
  CHECK(s.out == "out");
  CHECK_FALSE(s.help);
  CHECK(parsed({}).epochs == 10);
}

TEST_CASE("an unknown option or a stray word is refused with the known ones") {
  CHECK(complaint({"--epoch", "3"}) ==
        "fashion: unknown option '--epoch'; options are --epochs, --seed, --rate, --out, --mesh, --help");
  CHECK(complaint({"3"}).starts_with("fashion: unknown option '3'"));
  CHECK(complaint({""}).starts_with("fashion: unknown option ''"));
  CHECK(complaint({"--"}).starts_with("fashion: unknown option '--'"));
  CHECK(complaint({"--epochs", "3", "4"}).starts_with("fashion: unknown option '4'"));
}

TEST_CASE("a missing value is refused") {
  CHECK(complaint({"--epochs"}).starts_with("fashion: --epochs has no value"));
  CHECK(complaint({"--out", "--seed", "1"}).starts_with("fashion: --out has no value"));
  CHECK(complaint({"--out", ""}) == "fashion: --out is ''; it must be a text that is not empty");
  CHECK(complaint({"--epochs="}) == "fashion: --epochs is ''; it must be a whole number from 1 to 1000");
}

TEST_CASE("a value that is no number, or only starts as one, is refused with the range") {
  for (const std::string_view value : {"ten", "1x", "1.5", " 1", "1 ", "+1", "0x10", "1e2", "nan"})
    CHECK(complaint({"--epochs", value}) ==
          "fashion: --epochs is '" + std::string{value} + "'; it must be a whole number from 1 to 1000");
  for (const std::string_view value : {"nan", "inf", "-inf", "", "1e-3x", "1e999"})
    CHECK(complaint({"--rate", value}) ==
          "fashion: --rate is '" + std::string{value} + "'; it must be a number from 0 to 1");
}

TEST_CASE("a number outside the range is refused, negative and oversized ones too") {
  CHECK(parsed({"--epochs", "1"}).epochs == 1);
  CHECK(parsed({"--epochs", "1000"}).epochs == 1000);
  for (const std::string_view value : {"0", "1001", "-3", "99999999999999999999999"})
    CHECK(complaint({"--epochs", value}) ==
          "fashion: --epochs is '" + std::string{value} + "'; it must be a whole number from 1 to 1000");
  CHECK(complaint({"--seed", "-1"}) ==
        "fashion: --seed is '-1'; it must be a whole number from 0 to 18446744073709551615");
  CHECK(complaint({"--seed", "18446744073709551616"}).starts_with("fashion: --seed is '18446744073709551616'"));
}

TEST_CASE("a word that is not one of the choices is refused with all of them") {
  CHECK(complaint({"--mesh", "data=4"}) == "fashion: --mesh is 'data=4'; it must be one | data=8 | data=2,model=4");
}

TEST_CASE("an option given twice is refused") {
  CHECK(complaint({"--epochs", "1", "--epochs=2"}) ==
        "fashion: --epochs is given twice, the second time as '2'; give it once");
}

TEST_CASE("help is asked for by --help and -h and shows every option with its default") {
  CHECK(parsed({"--help"}).help);
  CHECK(parsed({"-h", "--nonsense"}).help);
  int epochs = 10;
  examples::args args{"fashion", "Trains a classifier."};
  args.number("--epochs", epochs, 1, 1000, "passes over the data");
  CHECK(args.help() ==
        "Trains a classifier.\n\nusage: fashion [--epochs N]\n\n"
        "  --epochs N\n      passes over the data: a whole number from 1 to 1000 (default 10)\n"
        "  --help\n      prints this\n");
}
