// SPDX-License-Identifier: Apache-2.0
// Graphs and programs as flat arrays of integers: the form in which one constant expression hands them to the next.
#pragma once

#include <tessera/graph/graph.hpp>
#include <tessera/graph/program.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace tessera::graph {

/// Integers that fit, and how many there were in all.
template <std::size_t Capacity>
struct packed {
  std::int64_t total = 0;
  std::array<std::int64_t, Capacity> words{};
};

/// Appends fields; what goes beyond the capacity is only counted.
struct packer {
  std::int64_t* words;
  std::int64_t capacity;
  std::int64_t total = 0;

  template <std::size_t Capacity>
  constexpr explicit packer(packed<Capacity>& out)
      : words(out.words.data()), capacity(static_cast<std::int64_t>(Capacity)) {}

  constexpr void put(std::int64_t word) {
    if (total < capacity) words[total] = word;
    ++total;
  }
  template <class T>
  constexpr void operator()(T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      put(std::bit_cast<std::int64_t>(static_cast<double>(value)));
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      if (total < capacity) words[total] = static_cast<std::int64_t>(value);
      ++total;
    } else if constexpr (requires { value.fields(*this); }) {
      value.fields(*this);
    } else {
      put(static_cast<std::int64_t>(value.size()));
      for (auto& element : value) (*this)(element);
    }
  }

  /// The first elements of an array, behind their number; the others are zeros.
  template <class T, std::size_t N>
  constexpr void leading(T (&values)[N]) {
    std::size_t count = N;
    while (count > 0 && values[count - 1] == 0) --count;
    put(static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i) put(static_cast<std::int64_t>(values[i]));
  }
};

/// Reads them back in the same order.
struct unpacker {
  const std::int64_t* next;

  template <class T>
  constexpr void operator()(T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      value = std::bit_cast<double>(*next++);
    } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      value = static_cast<T>(*next++);
    } else if constexpr (requires { value.fields(*this); }) {
      value.fields(*this);
    } else {
      value.resize(static_cast<std::size_t>(*next++), typename T::value_type{});
      for (auto& element : value) (*this)(element);
    }
  }

  template <class T, std::size_t N>
  constexpr void leading(T (&values)[N]) {
    const std::int64_t count = *next++;
    for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(*next++);
  }
};

/// The fields of a graph, in a view that both directions share. A mesh is not packed: it is part of the program's type.
struct graph_fields {
  graph& g;

  struct type_fields {
    aval& type;
    constexpr void fields(auto&& field) {
      field(type.type), field(type.rank);
      auto sets = static_cast<std::uint64_t>(type.varying) | static_cast<std::uint64_t>(type.unreduced) << 16 |
                  static_cast<std::uint64_t>(type.reduced) << 32 | static_cast<std::uint64_t>(type.pending) << 48;
      field(sets);
      type.varying = static_cast<axis_set>(sets);
      type.unreduced = static_cast<axis_set>(sets >> 16);
      type.reduced = static_cast<axis_set>(sets >> 32);
      type.pending = static_cast<combine>(sets >> 48);
      for (int i = 0; i < type.rank; ++i) field(type.dims[i].extent), field(type.dims[i].axes);
    }
  };

  struct node_fields {
    node& n;
    constexpr void fields(auto&& field) {
      field(n.code), field(n.value);
      type_fields{n.type}.fields(field);
      const int operands = n.operand_count();
      for (int k = 0; k < operands; ++k) field(n.operands[k]);
      field.leading(n.attribute);
    }
  };

  struct fault_fields {
    trace_fault& fault;
    constexpr void fields(auto&& field) {
      field(fault.what), field(fault.argument);
      type_fields{fault.type}.fields(field);
      type_fields{fault.beside}.fields(field);
      field(fault.code);
      field.leading(fault.name);
    }
  };

  /// The fault and the name come first, so that they can be read without the rest.
  constexpr void fields(auto&& field) {
    fault_fields{g.fault}.fields(field);
    field.leading(g.missing_name);
    int count = g.size();
    field(count);
    g.nodes.resize(static_cast<std::size_t>(count));
    for (node& n : g.nodes) node_fields{n}.fields(field);
    field(g.parameters);
    int outputs = static_cast<int>(g.outputs.size());
    field(outputs);
    g.outputs.resize(static_cast<std::size_t>(outputs));
    for (output& out : g.outputs) field(out.node), field(out.alias);
    int bodies = static_cast<int>(g.bodies.size());
    field(bodies);
    g.bodies.resize(static_cast<std::size_t>(bodies));
    for (graph& body : g.bodies) graph_fields{body}.fields(field);
  }
};

/// Bodies live on the mesh of the graph around them.
constexpr void set_mesh(graph& g, const mesh_value& mesh) {
  g.mesh = mesh;
  for (graph& body : g.bodies) set_mesh(body, mesh);
}

template <std::size_t Capacity>
constexpr packed<Capacity> pack(program p) {
  packed<Capacity> result;
  packer out(result);
  p.fields(out);
  result.total = out.total;
  return result;
}

template <std::size_t Capacity>
constexpr packed<Capacity> pack(graph g) {
  packed<Capacity> result;
  packer out(result);
  graph_fields{g}.fields(out);
  result.total = out.total;
  return result;
}

constexpr program unpack_program(std::span<const std::int64_t> words) {
  program p;
  unpacker in{words.data()};
  p.fields(in);
  return p;
}

/// What is wrong with a packed graph.
constexpr trace_fault unpack_fault(std::span<const std::int64_t> words) {
  trace_fault fault;
  unpacker in{words.data()};
  graph_fields::fault_fields{fault}.fields(in);
  return fault;
}

/// The name that a policy of a packed graph lists and no value carries, or an empty one.
constexpr value_name unpack_missing_name(std::span<const std::int64_t> words) {
  trace_fault fault;
  unpacker in{words.data()};
  graph_fields::fault_fields{fault}.fields(in);
  std::uint64_t name[4]{};
  in.leading(name);
  return value_name(name);
}

constexpr graph unpack_graph(std::span<const std::int64_t> words, const mesh_value& mesh) {
  graph g;
  unpacker in{words.data()};
  graph_fields{g}.fields(in);
  set_mesh(g, mesh);
  return g;
}

template <std::size_t Size, std::size_t Capacity>
constexpr std::array<std::int64_t, Size> first_words(const packed<Capacity>& from) {
  std::array<std::int64_t, Size> words{};
  std::int64_t* to = words.data();
  const std::int64_t* word = from.words.data();
  for (std::size_t i = 0; i < Size; ++i) to[i] = word[i];
  return words;
}

/// What Source::run() gives, packed into an array of exactly its size. It runs once, or twice if it needs more than a
/// guess.
template <class Source>
struct packed_constant {
  static constexpr std::size_t guess = 65536;
  static constexpr packed<guess> roomy = pack<guess>(Source::run());
  static constexpr std::size_t size = static_cast<std::size_t>(roomy.total);

  static constexpr std::array<std::int64_t, size> shrink() {
    if constexpr (size <= guess) return first_words<size>(roomy);
    else return pack<size>(Source::run()).words;
  }
  static constexpr std::array<std::int64_t, size> words = shrink();
};

}  // namespace tessera::graph
