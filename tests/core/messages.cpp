// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/messages.hpp>

#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <string_view>

namespace ts = tessera;

namespace {

#define TESSERA_ONE_MESSAGE(name, sentence) +1
constexpr int message_count = 0 TESSERA_MESSAGES(TESSERA_ONE_MESSAGE);
#undef TESSERA_ONE_MESSAGE

constexpr std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

/// `tessera: <operation>: <what is wrong>; <what to write instead>`
constexpr bool well_formed(std::string_view text) {
  constexpr std::string_view head = "tessera: ";
  if (!text.starts_with(head)) return false;
  text.remove_prefix(head.size());
  const std::size_t colon = text.find(": ");
  if (colon == 0 || colon == text.npos) return false;
  const std::string_view operation = text.substr(0, colon);
  for (char c : operation)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  text.remove_prefix(colon + 2);
  if (count_of(text, "; ") != 1) return false;
  const std::size_t semicolon = text.find("; ");
  const std::string_view wrong = text.substr(0, semicolon);
  const std::string_view cure = text.substr(semicolon + 2);
  return !wrong.empty() && !cure.empty() && wrong.front() != ' ' && cure.front() != ' ' && cure.back() != '.' &&
         count_of(text, "  ") == 0;
}

constexpr bool all_well_formed() {
  for (int m = 1; m <= message_count; ++m)
    if (!well_formed(ts::sentence(static_cast<ts::message>(m)))) return false;
  return true;
}

}  // namespace

TEST_CASE("Every sentence says the operation, what is wrong and what to write instead") {
  static_assert(all_well_formed());
  for (int m = 1; m <= message_count; ++m) {
    CAPTURE(ts::sentence(static_cast<ts::message>(m)));
    CHECK(well_formed(ts::sentence(static_cast<ts::message>(m))));
  }
}

TEST_CASE("A sentence that lacks a part would be noticed") {
  STATIC_REQUIRE(!well_formed("tessera: matmul: operands are bool"));
  STATIC_REQUIRE(!well_formed("matmul: operands are bool; convert them"));
  STATIC_REQUIRE(!well_formed("tessera: operands are bool; convert them"));
  STATIC_REQUIRE(!well_formed("tessera: matmul: operands are bool; "));
}

TEST_CASE("No two messages say the same, and the empty one says nothing") {
  std::set<std::string> seen;
  for (int m = 1; m <= message_count; ++m) seen.emplace(ts::sentence(static_cast<ts::message>(m)));
  CHECK(static_cast<int>(seen.size()) == message_count);
  static_assert(ts::sentence(ts::message::none).empty());
}
