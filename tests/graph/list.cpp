// SPDX-License-Identifier: Apache-2.0
// The sequence of graphs and programs does what a vector does, in the compiler and at run time.
#include <tessera/graph/list.hpp>

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using tessera::graph::list;

namespace {

/// The same changes on both kinds of sequence.
template <class Sequence>
constexpr Sequence changed() {
  using T = typename Sequence::value_type;
  Sequence s;
  for (int i = 0; i < 20; ++i) s.push_back(T(static_cast<std::size_t>(i)));
  s.push_back(s[3]);
  s.pop_back();
  s.resize(25, T(7));
  s.insert(s.begin() + 2, T(9));
  const Sequence copy = s;
  s.insert(s.begin(), copy.begin() + 1, copy.begin() + 4);
  s.insert(s.end(), copy.begin(), copy.end());
  s.resize(40, T(1));
  s.erase(s.begin() + 5);
  s.erase(s.begin() + 7, s.begin() + 12);
  s.erase(s.end() - 1);
  Sequence other;
  other.assign(3, T(4));
  s.insert(s.begin() + 1, other.begin(), other.end());
  other.assign(s.begin() + 2, s.begin() + 30);
  s.insert(s.end(), other.begin(), other.end());
  return s;
}

template <class T>
constexpr bool equal(const list<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

static_assert(equal(changed<list<int>>(), changed<std::vector<int>>()));

/// An element of the list itself survives the growth it causes.
constexpr bool appends_its_own() {
  list<int> s{5};
  for (int i = 0; i < 40; ++i) s.push_back(s.front());
  return s.size() == 41 && s.back() == 5;
}
static_assert(appends_its_own());

constexpr bool copies_are_apart() {
  list<list<int>> a(2, list<int>{1, 2});
  list<list<int>> b = a;
  b[1].push_back(3);
  a = b;
  b[0][0] = 9;
  list<list<int>> moved = std::move(b);
  return a[0] == list<int>{1, 2} && a[1] == list<int>{1, 2, 3} && moved[0][0] == 9 && !(moved == a);
}
static_assert(copies_are_apart());

}  // namespace

TEST_CASE("a list changes as a vector does", "[graph][list]") {
  CHECK(equal(changed<list<int>>(), changed<std::vector<int>>()));
  CHECK(appends_its_own());
  CHECK(copies_are_apart());
}

TEST_CASE("a list holds elements with memory of their own", "[graph][list]") {
  list<std::string> s;
  for (int i = 0; i < 30; ++i) s.push_back(std::string(static_cast<std::size_t>(i), 'x'));
  for (int i = 0; i < 10; ++i) s.push_back(s[20]);
  const list<std::string> copy = s;
  s.clear();
  CHECK(s.empty());
  REQUIRE(copy.size() == 40);
  for (std::size_t i = 30; i < 40; ++i) CHECK(copy[i] == std::string(20, 'x'));
}
