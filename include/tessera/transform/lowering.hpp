// SPDX-License-Identifier: Apache-2.0
// From units of nodes to steps over buffers: instruction lists, kernel sizes, how each array is read.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/fuse.hpp>
#include <tessera/transform/host_moves.hpp>
#include <tessera/transform/materialise.hpp>
#include <tessera/transform/partition.hpp>
#include <tessera/transform/reading.hpp>
#include <tessera/transform/schedule.hpp>

#include <algorithm>

namespace tessera::transform {

/// A step that copies buffer `from` to buffer `to`, of the same size; its accesses are added to the program.
constexpr graph::step copy_step(graph::program& p, int from, int to) {
  const graph::buffer& b = p.buffers[static_cast<std::size_t>(to)];
  graph::step s;
  s.kind = graph::step_kind::copy_out;
  s.varying = b.varying;
  s.first = static_cast<int>(p.accesses.size());
  s.sources = s.results = 1;
  s.bytes = 2 * b.bytes;
  p.accesses.push_back({from});
  p.accesses.push_back({to});
  return s;
}

/// The state of lowering a graph or a body: the program so far, and for each node its buffer.
struct lowering {
  const graph::graph& g;
  const fusion& f;
  graph::program& out;
  graph::list<int> buffer_of{};         ///< by node
  graph::list<int> needed_later{};      ///< by node: read outside its unit, or a result
  graph::list<int> uses{};              ///< by node: reads by nodes that run, and results
  graph::list<piece_place> in_place{};  ///< by node: of an update, where its piece is made

  constexpr lowering(const graph::graph& graph_in, const fusion& fusion_in, graph::program& program_out)
      : g(graph_in), f(fusion_in), out(program_out) {
    buffer_of.resize(g.nodes.size(), -1);
    needed_later.resize(g.nodes.size(), 0);
    uses.resize(g.nodes.size(), 0);
    in_place.resize(g.nodes.size(), piece_place::elsewhere);
  }

  constexpr int add_buffer(graph::space where, std::int64_t place, const aval& type) {
    out.buffers.push_back({where, place, type.bytes(), type.type, type.varying});
    return static_cast<int>(out.buffers.size()) - 1;
  }

  /// The buffer that holds node `id`, made when it is first asked for.
  constexpr int buffer(int id) {
    id = stored_node(g, id);
    int& found = buffer_of[static_cast<std::size_t>(id)];
    if (found >= 0) return found;
    const graph::node& n = g.at(id);
    if (n.code == op::constant) {
      out.constants.push_back({n.value});
      return found = add_buffer(graph::space::constant, static_cast<std::int64_t>(out.constants.size()) - 1, n.type);
    }
    if (n.code != op::slice)
      return found = add_buffer(lies_on_host(g, id) ? graph::space::host : graph::space::temporary, 0, n.type);
    const int whole = buffer(n.operands[0]);
    const int part = add_buffer(graph::space::window, whole, n.type);
    out.buffers[static_cast<std::size_t>(part)].offset =
        offset_in(g.type(n.operands[0]), graph::slices_of(n, n.type)) * info(n.type.type).size;
    return buffer_of[static_cast<std::size_t>(id)] = part;
  }

  constexpr void mark_needed() {
    for (int i = 0; i < g.size(); ++i) {
      const int here = f.unit_of[static_cast<std::size_t>(i)];
      if (here < 0) continue;
      graph::for_each_read(g, i, [&](int operand) {
        const int read = awaited_node(g, operand);
        ++uses[static_cast<std::size_t>(read)];
        if (f.unit_of[static_cast<std::size_t>(read)] != here) needed_later[static_cast<std::size_t>(read)] = 1;
      });
    }
    for (const graph::output& o : g.outputs) {
      needed_later[static_cast<std::size_t>(o.node)] = 1;
      ++uses[static_cast<std::size_t>(stored_node(g, o.node))];
    }
  }

  /// Whether an array has no content but pieces that are made in it.
  constexpr bool has_only_pieces(int base) const {
    return g.at(base).code == op::empty ||
           (takes_piece_in_place(base) && has_only_pieces(stored_node(g, g.at(base).operands[0])));
  }

  /// Whether `update` writes its piece side by side into memory that only it changes, and nobody else reads the piece:
  /// then the piece is made there. What the base holds besides pieces is made before it.
  constexpr bool takes_piece_in_place(int update) const {
    const graph::node& n = g.at(update);
    if (n.code != op::update_slice) return false;
    const int piece = stored_node(g, n.operands[1]);
    const int base = stored_node(g, n.operands[0]);
    if (g.at(base).code != op::empty && (f.unit_number(base) < 0 || uses[static_cast<std::size_t>(base)] != 1))
      return false;
    const bool made_for_it = f.unit_number(piece) >= 0 && g.at(piece).code != op::control &&
                             uses[static_cast<std::size_t>(piece)] == 1 &&
                             buffer_of[static_cast<std::size_t>(piece)] < 0;
    return made_for_it && g.type(piece).varying == n.type.varying && g.type(piece).type == n.type.type &&
           lies_together(n.type, graph::slices_of(n, g.type(n.operands[1]))) &&
           (has_only_pieces(base) || (base < piece && !makes_before(piece, base)));
  }

  /// Whether the unit of node `later` waits for that of node `earlier`.
  constexpr bool makes_before(int earlier, int later) const {
    graph::list<int> seen;
    return f.unit_number(later) >= 0 && waits_for(g, f, f.unit_number(later), f.unit_number(earlier), seen);
  }

  /// Decides which pieces are made in the arrays they are put into, from the last update to the first.
  constexpr void place_pieces() {
    for (int i = 0; i < g.size(); ++i)
      if (takes_piece_in_place(i))
        in_place[static_cast<std::size_t>(i)] =
            has_only_pieces(stored_node(g, g.at(i).operands[0])) ? piece_place::unordered : piece_place::after_base;
    for (int i = g.size() - 1; i >= 0; --i) {
      if (in_place[static_cast<std::size_t>(i)] == piece_place::elsewhere) continue;
      const graph::node& n = g.at(i);
      const int whole = buffer(i);
      const int base = stored_node(g, n.operands[0]);
      if (g.at(base).code != op::empty) {
        buffer_of[static_cast<std::size_t>(base)] = whole;
      }
      const sharding::slices taken = graph::slices_of(n, g.type(n.operands[1]));
      const int piece = stored_node(g, n.operands[1]);
      const int part = add_buffer(graph::space::window, whole, g.type(piece));
      out.buffers[static_cast<std::size_t>(part)].offset = offset_in(n.type, taken) * info(n.type.type).size;
      buffer_of[static_cast<std::size_t>(piece)] = part;
    }
  }

  /// How node `id` is read by a kernel over `domain`: through ways of reading down to memory, or to positions.
  constexpr graph::access access_of(int id, const aval& domain) {
    reading how(g.type(id), domain);
    id = read_through(g, id, how);
    std::int64_t strides[max_rank]{};
    if (g.at(id).code == op::iota) {
      strides[g.at(id).attribute[0]] = 1;
      return how.over(strides, -1);
    }
    row_major(g.type(id), strides);
    return how.over(strides, buffer(id));
  }

  /// Drops dimensions of extent 1 and joins neighbours that every access walks through as one.
  constexpr int collapse(const aval& domain, std::int64_t (&extents)[max_rank], std::size_t first) {
    int rank = 0;
    for (int d = 0; d < domain.rank; ++d) {
      if (domain.dims[d].extent == 1) continue;
      bool joins = rank > 0;
      for (std::size_t i = first; joins && i < out.accesses.size(); ++i)
        joins = out.accesses[i].strides[rank - 1] == out.accesses[i].strides[d] * domain.dims[d].extent;
      if (!joins) extents[rank++] = 1;
      extents[rank - 1] *= domain.dims[d].extent;
      for (std::size_t i = first; i < out.accesses.size(); ++i)
        out.accesses[i].strides[rank - 1] = out.accesses[i].strides[d];
    }
    for (std::size_t i = first; i < out.accesses.size(); ++i)
      for (int d = rank; d < max_rank; ++d) out.accesses[i].strides[d] = 0;
    return rank;
  }

  static constexpr graph::source_mode mode_of(const graph::access& a, int rank) {
    const std::int64_t inner = rank > 0 ? a.strides[rank - 1] : 0;
    if (a.buffer < 0) return inner == 0 ? graph::source_mode::count_repeated : graph::source_mode::count;
    return inner == 0   ? graph::source_mode::repeated
           : inner == 1 ? graph::source_mode::contiguous
                        : graph::source_mode::strided;
  }

  constexpr void put(int w) { out.words.push_back({w}); }

  /// One fused step. Its instruction list is: lanes, counts of sources, instructions and results; a (dtype, mode) a
  /// source; an (operation, dtype, operand dtype, three registers) an instruction; a (dtype, register) a result.
  /// Registers number sources first, then instructions.
  constexpr void fused_step(int number, const graph::list<int>& members) {
    const aval& domain = g.type(members[0]);
    graph::step s;
    s.varying = domain.varying;
    s.first = static_cast<int>(out.accesses.size());
    graph::list<int> source_node;
    graph::list<int> registers(static_cast<std::size_t>(3) * members.size(), -1);
    graph::list<dtype> source_type;
    for (std::size_t m = 0; m < members.size(); ++m) {
      const graph::node& n = g.at(members[m]);
      for (int k = 0; k < n.operand_count(); ++k) {
        const int operand = n.operands[k];
        if (f.unit_of[static_cast<std::size_t>(operand)] == number) {
          const auto made = std::find(members.begin(), members.end(), operand) - members.begin();
          registers[3 * m + static_cast<std::size_t>(k)] = 1000 + static_cast<int>(made);
          continue;
        }
        auto known =
            static_cast<std::size_t>(std::find(source_node.begin(), source_node.end(), operand) - source_node.begin());
        if (known == source_node.size()) {
          source_node.push_back(operand);
          source_type.push_back(g.type(operand).type);
          out.accesses.push_back(access_of(operand, domain));
        }
        registers[3 * m + static_cast<std::size_t>(k)] = static_cast<int>(known);
      }
      const bool counted = n.code != op::copy && n.code != op::convert && n.code != op::stop_gradient;
      (about(n.code).transcendental ? s.transcendentals : s.flops) += counted ? n.type.size() : 0;
    }
    s.sources = static_cast<int>(source_node.size());
    for (int id : members) {
      if (!needed_later[static_cast<std::size_t>(id)]) continue;
      out.accesses.push_back(access_of(id, domain));
      ++s.results;
    }
    s.rank = collapse(domain, s.sizes, static_cast<std::size_t>(s.first));
    s.code = write_code(members, registers, source_type, s, f.units[static_cast<std::size_t>(number)].lanes);
    add_step(s);
  }

  /// Appends the instruction list, or finds the equal one that is already there.
  constexpr int write_code(const graph::list<int>& members, const graph::list<int>& registers,
                           const graph::list<dtype>& source_type, const graph::step& s, int lanes) {
    const int first = static_cast<int>(out.words.size());
    put(lanes), put(s.sources), put(static_cast<int>(members.size())), put(s.results);
    for (int i = 0; i < s.sources; ++i) {
      put(static_cast<int>(source_type[static_cast<std::size_t>(i)]));
      put(static_cast<int>(mode_of(out.accesses[static_cast<std::size_t>(s.first + i)], s.rank)));
    }
    for (std::size_t m = 0; m < members.size(); ++m) {
      const graph::node& n = g.at(members[m]);
      put(static_cast<int>(n.code)), put(static_cast<int>(n.type.type));
      put(static_cast<int>(g.type(n.operands[n.code == op::select ? 1 : 0]).type));
      for (std::size_t k = 0; k < 3; ++k) {
        const int r = registers[3 * m + k];
        put(r >= 1000 ? s.sources + r - 1000 : r);
      }
    }
    for (std::size_t m = 0; m < members.size(); ++m)
      if (needed_later[static_cast<std::size_t>(members[m])])
        put(static_cast<int>(g.type(members[m]).type)), put(s.sources + static_cast<int>(m));
    const int count = static_cast<int>(out.words.size()) - first;
    for (std::size_t c = 0; c < out.codes.size(); ++c) {
      bool equal = out.codes[c].count == count;
      for (int i = 0; equal && i < count; ++i)
        equal = out.words[static_cast<std::size_t>(out.codes[c].first + i)].value ==
                out.words[static_cast<std::size_t>(first + i)].value;
      if (!equal) continue;
      out.words.resize(static_cast<std::size_t>(first));
      return static_cast<int>(c);
    }
    out.codes.push_back({first, count});
    return static_cast<int>(out.codes.size()) - 1;
  }

  /// Appends a step and counts the bytes it moves on a device: all of each array, or as much as its steps reach.
  constexpr void add_step(graph::step& s) {
    std::int64_t reached = 1;
    for (int d = 0; d < s.rank; ++d) reached *= s.sizes[d];
    for (int i = 0; i < s.sources + s.results; ++i)
      if (const int b = out.accesses[static_cast<std::size_t>(s.first + i)].buffer; b >= 0) {
        const graph::buffer& array = out.buffers[static_cast<std::size_t>(b)];
        const bool fused = s.kind == graph::step_kind::fused;
        s.bytes += fused ? std::min(array.bytes, reached * info(array.type).size) : array.bytes;
      }
    out.steps.push_back(s);
  }

  constexpr graph::step plain_step(graph::step_kind kind, int id) {
    graph::step s;
    s.kind = kind;
    s.varying = g.type(id).varying;
    s.first = static_cast<int>(out.accesses.size());
    const graph::node& n = g.at(id);
    s.sources = n.operand_count();
    s.results = 1;
    for (int k = 0; k < s.sources; ++k) out.accesses.push_back({buffer(n.operands[k])});
    out.accesses.push_back({buffer(id)});
    return s;
  }

  static constexpr std::int64_t extent_of(const aval& type, sharding::dim_list dims) {
    std::int64_t n = 1;
    for (int i = 0; i < sharding::dim_count(dims); ++i) n *= type.dims[sharding::dim_at(dims, i)].extent;
    return n;
  }

  constexpr void dot_step(int id) {
    graph::step s = plain_step(graph::step_kind::dot, id);
    const graph::node& n = g.at(id);
    const sharding::dot_dims dims = graph::dot_dims_of(n);
    const aval& lhs = g.type(n.operands[0]);
    const aval& rhs = g.type(n.operands[1]);
    s.sizes[0] = extent_of(lhs, sharding::free_dims(lhs.rank, dims.lhs_contracting, dims.lhs_batch));
    s.sizes[1] = extent_of(rhs, sharding::free_dims(rhs.rank, dims.rhs_contracting, dims.rhs_batch));
    s.sizes[2] = extent_of(lhs, dims.lhs_contracting);
    s.sizes[3] = extent_of(lhs, dims.lhs_batch);
    s.sizes[4] = layout_of(lhs.rank, dims.lhs_contracting, dims.lhs_batch).contracting_first;
    const dot_operand_layout right = layout_of(rhs.rank, dims.rhs_contracting, dims.rhs_batch);
    s.sizes[5] = !right.contracting_first &&
                 rhs.rank > sharding::dim_count(dims.rhs_batch) + sharding::dim_count(dims.rhs_contracting);
    s.flops = 2 * s.sizes[0] * s.sizes[1] * s.sizes[2] * s.sizes[3];
    add_step(s);
  }

  /// Extents before, of, and after a run of dimensions.
  static constexpr void around(const aval& type, int first, int last, std::int64_t (&sizes)[max_rank], int at) {
    sizes[at] = sizes[at + 1] = sizes[at + 2] = 1;
    for (int d = 0; d < type.rank; ++d) sizes[at + (d < first ? 0 : d <= last ? 1 : 2)] *= type.dims[d].extent;
  }

  constexpr void reduce_step(int id) {
    graph::step s = plain_step(graph::step_kind::reduce, id);
    const graph::node& n = g.at(id);
    int first = 0;
    while (!(n.attribute[0] & (1U << first))) ++first;
    int last = first;
    while (n.attribute[0] & (1U << (last + 1))) ++last;
    s.sizes[0] = static_cast<std::int64_t>(combine_of(n.code));
    around(g.type(n.operands[0]), first, last, s.sizes, 1);
    s.flops = g.type(n.operands[0]).size();
    add_step(s);
  }

  constexpr void rows_step(int id, graph::step_kind kind, int flops_an_element) {
    graph::step s = plain_step(kind, id);
    const aval& type = g.type(id);
    s.sizes[1] = type.dims[type.rank - 1].extent;
    s.sizes[0] = s.sizes[1] == 0 ? 0 : type.size() / s.sizes[1];
    s.flops = flops_an_element * type.size();
    s.transcendentals = about(g.at(id).code).transcendental ? type.size() : 0;
    add_step(s);
  }

  /// Outer, along, inner, then the node's second attribute (of an argsort: how many are wanted) and its third.
  constexpr void axis_step(int id, graph::step_kind kind) {
    graph::step s = plain_step(kind, id);
    const graph::node& n = g.at(id);
    const auto axis = static_cast<int>(n.attribute[0]);
    const aval& operand = g.type(n.operands[0]);
    around(operand, axis, axis, s.sizes, 0);
    s.sizes[3] =
        kind == graph::step_kind::argsort ? n.type.dims[axis].extent : static_cast<std::int64_t>(n.attribute[1]);
    s.sizes[4] = static_cast<std::int64_t>(n.attribute[2]);
    s.flops = n.operand_count() * operand.size();
    add_step(s);
  }

  /// The number of the operation; each access has the extents of its block, then -1.
  constexpr void custom_step(int id) {
    graph::step s = plain_step(graph::step_kind::custom, id);
    const graph::node& n = g.at(id);
    s.sizes[0] = std::bit_cast<std::int64_t>(n.attribute[0]);
    for (int i = 0; i <= s.sources; ++i) {
      const aval& type = i < s.sources ? g.type(n.operands[i]) : n.type;
      for (int d = 0; d < max_rank; ++d)
        out.accesses[static_cast<std::size_t>(s.first + i)].strides[d] = d < type.rank ? type.dims[d].extent : -1;
    }
    s.flops = n.type.size();
    add_step(s);
  }

  constexpr void check_step(int id) {
    graph::step s;
    s.kind = graph::step_kind::check_range;
    s.varying = g.type(id).varying;
    s.first = static_cast<int>(out.accesses.size());
    s.sources = 1;
    const graph::node& n = g.at(id);
    s.sizes[0] = static_cast<std::int64_t>(n.attribute[0]);
    s.sizes[1] = n.type.size();
    s.rank = std::min(n.type.rank, 6);
    graph::access block{buffer(n.operands[0])};
    for (int d = 0; d < s.rank; ++d) {
      block.strides[d] = n.type.dims[d].extent;
      s.sizes[2 + d] = static_cast<std::int64_t>((n.attribute[1 + d / 2] >> (32 * (d % 2))) & 0xffffffffU);
    }
    out.accesses.push_back(block);
    add_step(s);
  }

  constexpr void transfer_step(int id, graph::step_kind kind) {
    graph::step s = plain_step(kind, id);
    add_step(s);
  }

  /// The step of a unit that is no movement, collective or control node; those are appended by lower_unit.
  constexpr void own_step(int number, const graph::list<int>& members) {
    const int id = members[0];
    switch (g.at(id).code) {
      case op::dot: return dot_step(id);
      case op::reduce_sum:
      case op::reduce_max:
      case op::reduce_min:
      case op::reduce_prod: return reduce_step(id);
      case op::softmax: return rows_step(id, graph::step_kind::softmax, 4);
      case op::log_softmax: return rows_step(id, graph::step_kind::log_softmax, 4);
      case op::softmax_grad: return rows_step(id, graph::step_kind::softmax_grad, 4);
      case op::log_softmax_grad: return rows_step(id, graph::step_kind::log_softmax_grad, 3);
      case op::cumulative: return axis_step(id, graph::step_kind::cumulative);
      case op::recurrence: return axis_step(id, graph::step_kind::recurrence);
      case op::argsort: return axis_step(id, graph::step_kind::argsort);
      case op::custom1:
      case op::custom2:
      case op::custom3: return custom_step(id);
      case op::check_range: return check_step(id);
      case op::to_host: return transfer_step(id, graph::step_kind::to_host);
      case op::from_host: return transfer_step(id, graph::step_kind::from_host);
      default: return fused_step(number, members);
    }
  }
};

}  // namespace tessera::transform
