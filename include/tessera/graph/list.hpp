// SPDX-License-Identifier: Apache-2.0
// The sequence that graphs and programs are kept in. A vector whose operations cost a compiler that interprets constant
// expressions as little as possible: it pays for calls, and those of std::vector call others several deep.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>

namespace tessera::graph {

/// Elements are default-constructible and assigned to; iterators are pointers. As with std::vector, what makes it
/// longer invalidates them.
template <class T>
class list {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using iterator = T*;
  using const_iterator = const T*;

  constexpr list() = default;
  constexpr explicit list(std::size_t n) { resize(n); }
  constexpr list(std::size_t n, const T& value) { resize(n, value); }
  constexpr list(std::initializer_list<T> from) { append(from.begin(), from.end()); }
  template <class Iterator>
  requires requires(Iterator i) { *++i; }
  constexpr list(Iterator from, Iterator end) { append(from, end); }
  constexpr list(const list& other) { append(other.first, other.first + other.count); }
  constexpr list(list&& other) noexcept : first(other.first), count(other.count), room_(other.room_) {
    other.first = nullptr;
    other.count = other.room_ = 0;
  }
  constexpr list& operator=(const list& other) {
    if (this == &other) return *this;
    count = 0;
    append(other.first, other.first + other.count);
    return *this;
  }
  constexpr list& operator=(list&& other) noexcept {
    std::swap(first, other.first);
    std::swap(count, other.count);
    std::swap(room_, other.room_);
    return *this;
  }
  constexpr ~list() { delete[] first; }

  constexpr std::size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T& operator[](std::size_t i) { return first[i]; }
  constexpr const T& operator[](std::size_t i) const { return first[i]; }
  constexpr T* data() { return first; }
  constexpr const T* data() const { return first; }
  constexpr T* begin() { return first; }
  constexpr const T* begin() const { return first; }
  constexpr T* end() { return first + count; }
  constexpr const T* end() const { return first + count; }
  constexpr T& front() { return first[0]; }
  constexpr const T& front() const { return first[0]; }
  constexpr T& back() { return first[count - 1]; }
  constexpr const T& back() const { return first[count - 1]; }

  constexpr void reserve(std::size_t room) {
    if (room > room_) delete[] move_to(room);
  }

  constexpr void push_back(const T& value) {
    if (count < room_) {
      first[count++] = value;
      return;
    }
    push_back(T(value));  // a copy, since value may be one of the elements that are moved
  }
  constexpr void push_back(T&& value) {
    if (count < room_) {
      first[count++] = std::move(value);
      return;
    }
    T moved = std::move(value);
    delete[] move_to(grown(count + 1));
    first[count++] = std::move(moved);
  }
  template <class... Args>
  constexpr T& emplace_back(Args&&... args) {
    push_back(T{std::forward<Args>(args)...});
    return back();
  }
  constexpr void pop_back() { --count; }
  constexpr void clear() { count = 0; }

  /// Appends the elements of a range that is not its own.
  template <class Iterator>
  constexpr void append(Iterator from, Iterator end) {
    reserve(count + static_cast<std::size_t>(end - from));
    for (; from != end; ++from) first[count++] = *from;
  }

  /// New elements have the value.
  constexpr void resize(std::size_t n, const T& value) {
    reserve(n);
    for (; count < n; ++count) first[count] = value;
    count = n;
  }
  constexpr void resize(std::size_t n) { resize(n, T{}); }

  constexpr void assign(std::size_t n, const T& value) { *this = list(n, value); }
  template <class Iterator>
  requires requires(Iterator i) { *++i; }
  constexpr void assign(Iterator from, Iterator end) { *this = list(from, end); }

  constexpr T* erase(const T* place) { return erase(place, place + 1); }
  constexpr T* erase(const T* from, const T* end) {
    T* const gap = first + (from - first);
    T* to = gap;
    for (T* at = first + (end - first); at != first + count; ++at) *to++ = std::move(*at);
    count = static_cast<std::size_t>(to - first);
    return gap;
  }

  constexpr T* insert(const T* place, const T& value) { return insert(place, &value, &value + 1); }
  /// Puts the elements of a range that is not its own before `place`.
  template <class Iterator>
  constexpr T* insert(const T* place, Iterator from, Iterator end) {
    const auto at = static_cast<std::size_t>(place - first);
    list longer;
    longer.reserve(count + static_cast<std::size_t>(end - from));
    longer.append(first, first + at);
    longer.append(from, end);
    longer.append(first + at, first + count);
    *this = std::move(longer);
    return first + at;
  }

  friend constexpr bool operator==(const list& a, const list& b) {
    if (a.count != b.count) return false;
    for (std::size_t i = 0; i < a.count; ++i)
      if (!(a.first[i] == b.first[i])) return false;
    return true;
  }

  /// The first element, for those who read so often that a call matters to them; owned by the list.
  T* first = nullptr;
  /// How many there are.
  std::size_t count = 0;

 private:
  constexpr std::size_t grown(std::size_t least) const {
    return least > 2 * room_ ? (least < 8 ? 8 : least) : 2 * room_;
  }

  /// Moves the elements to new memory and gives the old one, for the caller to delete.
  constexpr T* move_to(std::size_t room) {
    T* const old = first;
    first = new T[room];
    room_ = room;
    for (std::size_t i = 0; i < count; ++i) first[i] = std::move(old[i]);
    return old;
  }

  std::size_t room_ = 0;
};

}  // namespace tessera::graph
