// SPDX-License-Identifier: Apache-2.0
// Sharding rule of einsum: subscripts as values, and the products of two arrays that they ask for.
#pragma once

#include <tessera/sharding/dot_general.hpp>
#include <tessera/sharding/reduce.hpp>
#include <tessera/sharding/reshape.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace tessera::sharding {

inline constexpr int max_einsum_operands = 8;

/// The dimensions of one array, a letter each.
struct subscripts {
  int count = 0;
  char letters[max_rank]{};

  constexpr int find(char c) const {
    for (int i = 0; i < count; ++i)
      if (letters[i] == c) return i;
    return -1;
  }
  constexpr bool has(char c) const { return find(c) >= 0; }
  constexpr void add(char c) { letters[count++] = c; }
};

/// `ab,bc->ac` taken apart.
struct einsum_text {
  int operands = 0;
  subscripts operand[max_einsum_operands]{};
  subscripts result{};
  message failure = message::none;
};

/// Adds one letter to an array's subscripts.
constexpr message add_letter(subscripts& to, char c) {
  if (to.count == max_rank) return message::shape_rank;
  if (to.has(c)) return message::einsum_repeated;
  to.add(c);
  return message::none;
}

/// What stands for dimension `from_last` of those that `...` means, counted from their last one.
constexpr char ellipsis_letter(int from_last) { return static_cast<char>('0' + max_rank - 1 - from_last); }

constexpr bool is_einsum_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// How many dimensions of an array `...` means among its letters: those that the letters leave.
constexpr int ellipsis_rank(std::string_view letters, int rank) {
  int named = 0;
  for (char c : letters) named += is_einsum_letter(c) ? 1 : 0;
  return letters.find("...") == letters.npos || rank < named ? 0 : rank - named;
}

/// Subscripts in which `...` is written out.
struct einsum_subscripts {
  std::vector<char> chars{};
  message failure = message::none;

  constexpr std::string_view view() const { return {chars.data(), chars.size()}; }

  /// Letters of one array, whose `...` stands for `count` dimensions.
  constexpr void append(std::string_view letters, int count) {
    const std::size_t dots = letters.find("...");
    for (std::size_t i = 0; i < letters.size(); ++i) {
      if (letters[i] >= '0' && letters[i] <= '9') failure = message::einsum_text;
      if (i != dots) {
        chars.push_back(letters[i]);
        continue;
      }
      for (int k = count - 1; k >= 0; --k) chars.push_back(ellipsis_letter(k));
      i += 2;
    }
  }
};

/// In the result `...` is as much as in the operand where it is most.
constexpr einsum_subscripts write_out_ellipses(std::string_view text, std::span<const aval> x) {
  einsum_subscripts out;
  const std::size_t arrow = text.find("->");
  const std::string_view operands = text.substr(0, arrow);
  int most = 0;
  std::size_t operand = 0;
  for (std::size_t from = 0; from <= operands.size(); ++operand) {
    const std::size_t comma = operands.find(',', from);
    const std::string_view letters = operands.substr(from, comma == operands.npos ? comma : comma - from);
    const int count = ellipsis_rank(letters, operand < x.size() ? x[operand].rank : 0);
    most = count > most ? count : most;
    out.append(letters, count);
    if (comma == operands.npos) break;
    out.chars.push_back(',');
    from = comma + 1;
  }
  if (arrow == text.npos) return out;
  const std::string_view result = text.substr(arrow + 2);
  out.append("->", 0);
  out.append(result, most);
  if (most > 0 && result.find("...") == result.npos) out.failure = message::einsum_ellipsis;
  return out;
}

/// The dimensions of `...`, then the letters that stand once in all operands, in alphabetical order: the result where
/// none is written.
constexpr message implicit_result(einsum_text& parsed) {
  for (char c = ellipsis_letter(max_rank - 1); c <= ellipsis_letter(0); ++c) {
    bool found = false;
    for (int i = 0; i < parsed.operands; ++i) found = found || parsed.operand[i].has(c);
    if (!found) continue;
    if (const message why = add_letter(parsed.result, c); why != message::none) return why;
  }
  for (int c = 'A'; c <= 'z'; ++c) {
    int found = 0;
    for (int i = 0; i < parsed.operands; ++i) found += parsed.operand[i].has(static_cast<char>(c));
    if (found != 1) continue;
    if (const message why = add_letter(parsed.result, static_cast<char>(c)); why != message::none) return why;
  }
  return message::none;
}

constexpr message unknown_letter(const einsum_text& parsed) {
  for (int i = 0; i < parsed.result.count; ++i) {
    bool known = false;
    for (int k = 0; k < parsed.operands; ++k) known |= parsed.operand[k].has(parsed.result.letters[i]);
    if (!known) return message::einsum_unknown;
  }
  return message::none;
}

/// Digits are what `...` was written out as.
constexpr einsum_text parse_einsum(std::string_view text) {
  einsum_text parsed;
  parsed.operands = 1;
  bool arrow = false;
  const auto fail = [&](message why) {
    parsed.failure = why;
    return parsed;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == ',' && !arrow) {
      if (parsed.operands == max_einsum_operands) return fail(message::einsum_text);
      ++parsed.operands;
    } else if (c == '-' && !arrow && i + 1 < text.size() && text[i + 1] == '>') {
      arrow = true;
      ++i;
    } else if (is_einsum_letter(c) || (c >= '0' && c <= '9')) {
      subscripts& to = arrow ? parsed.result : parsed.operand[parsed.operands - 1];
      if (const message why = add_letter(to, c); why != message::none) return fail(why);
    } else {
      return fail(message::einsum_text);
    }
  }
  return fail(arrow ? unknown_letter(parsed) : implicit_result(parsed));
}

/// The product of what is computed so far with one more operand: first each is summed over letters that nobody else
/// has, then they are multiplied as `dims` says.
struct einsum_step {
  dim_set sum_lhs = 0;
  dim_set sum_rhs = 0;
  dot_dims dims{};
  aval lhs{};
  aval rhs{};
  aval type{};
};

/// All products, left to right, and the permutation of the last one's dimensions that the result asks for.
struct einsum_plan {
  ruling ruled{};
  int steps = 0;
  einsum_step step[max_einsum_operands]{};
  dim_list permutation = 0;
};

/// The letters of `of` that neither `other` nor anyone who comes `later` has.
constexpr dim_set summed_first(const subscripts& of, const subscripts& other, const subscripts& later) {
  dim_set set = 0;
  for (int i = 0; i < of.count; ++i)
    if (!other.has(of.letters[i]) && !later.has(of.letters[i])) set |= 1U << i;
  return set;
}

constexpr subscripts without(const subscripts& of, dim_set dims) {
  subscripts rest;
  for (int i = 0; i < of.count; ++i)
    if (!(dims & (1U << i))) rest.add(of.letters[i]);
  return rest;
}

/// Letters of both are batched where `later` has them, else summed over.
constexpr dot_dims pair_dims(const subscripts& lhs, const subscripts& rhs, const subscripts& later) {
  dot_dims dims;
  for (int i = 0; i < lhs.count; ++i) {
    const int j = rhs.find(lhs.letters[i]);
    if (j < 0) continue;
    const bool batch = later.has(lhs.letters[i]);
    dim_list& left = batch ? dims.lhs_batch : dims.lhs_contracting;
    dim_list& right = batch ? dims.rhs_batch : dims.rhs_contracting;
    left = dim_append(left, i);
    right = dim_append(right, j);
  }
  return dims;
}

/// The letters of a product: batch, then free ones of lhs, then free ones of rhs.
constexpr subscripts pair_letters(const subscripts& lhs, const subscripts& rhs, const dot_dims& dims) {
  subscripts result;
  const auto take = [&](const subscripts& from, dim_list list) {
    for (int i = 0; i < dim_count(list); ++i) result.add(from.letters[dim_at(list, i)]);
  };
  take(lhs, dims.lhs_batch);
  take(lhs, free_dims(lhs.count, dims.lhs_contracting, dims.lhs_batch));
  take(rhs, free_dims(rhs.count, dims.rhs_contracting, dims.rhs_batch));
  return result;
}

/// The type of a product on the way to a result whose cut was chosen: nothing is asked of the operands; where both cut
/// a batch dimension lhs wins, and an axis that two dimensions would use stays with the first.
constexpr aval loose_product(const aval& lhs, const aval& rhs, const dot_dims& dims) {
  aval type = dot_result(lhs, rhs, dims);
  for (int i = 0; i < dim_count(dims.lhs_batch); ++i)
    if (type.dims[i].axes == 0) type.dims[i].axes = rhs.dims[dim_at(dims.rhs_batch, i)].axes;
  axis_set seen = 0;
  for (int i = 0; i < type.rank; ++i) {
    if (seen & set_of(type.dims[i].axes)) type.dims[i].axes = 0;
    seen = static_cast<axis_set>(seen | set_of(type.dims[i].axes));
  }
  return type;
}

/// Whether operands have the ranks, extents and element types that the subscripts ask for.
constexpr message einsum_fault(std::span<const aval> x, const einsum_text& text) {
  if (text.failure != message::none) return text.failure;
  if (static_cast<int>(x.size()) != text.operands) return message::einsum_operands;
  std::int64_t extents[128];
  for (std::int64_t& e : extents) e = -1;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const subscripts& letters = text.operand[k];
    if (x[k].type != x[0].type) return message::matmul_dtype;
    if (x[k].type == dtype::bool_) return message::matmul_bool;
    if (x[k].rank != letters.count) return message::einsum_rank;
    for (int i = 0; i < letters.count; ++i) {
      std::int64_t& known = extents[static_cast<int>(letters.letters[i])];
      if (known >= 0 && known != x[k].dims[i].extent) return message::einsum_extent;
      known = x[k].dims[i].extent;
    }
  }
  return message::none;
}

/// The letters that the result or an operand after number `k` has.
constexpr bool needed_after(const einsum_text& text, int k, char c) {
  if (text.result.has(c)) return true;
  for (int i = k + 1; i < text.operands; ++i)
    if (text.operand[i].has(c)) return true;
  return false;
}

/// Products of two operands from left to right. Without `out_spec` each is ruled as dot_general is; with it only the
/// given spec is checked. Source: jax.numpy.einsum, Explicit mode.
constexpr einsum_plan einsum(std::span<const aval> x, const einsum_text& text, const spec_value* out_spec,
                             const mesh_value& mesh) {
  einsum_plan plan;
  const auto fail = [&](const ruling& why) {
    plan.ruled = why;
    return plan;
  };
  if (const message why = einsum_fault(x, text); why != message::none) return fail(refuse(why));
  for (const aval& a : x)
    if (a.unreduced != 0 && text.operands > 1) return fail(refuse(message::unreduced_operand));
  aval so_far = x[0];
  subscripts letters = text.operand[0];
  const auto later_than = [&](int k, const subscripts& of) {
    subscripts later;
    for (int i = 0; i < of.count; ++i)
      if (needed_after(text, k, of.letters[i])) later.add(of.letters[i]);
    return later;
  };
  if (text.operands == 1) {
    einsum_step& only = plan.step[0];
    only.sum_lhs = summed_first(letters, {}, text.result);
    only.lhs = only.type = reduce(so_far, only.sum_lhs, false, nullptr, mesh).result;
    letters = without(letters, only.sum_lhs);
    so_far = only.type;
    plan.steps = 1;
  }
  for (int k = 1; k < text.operands; ++k) {
    einsum_step& s = plan.step[plan.steps++];
    const subscripts& right = text.operand[k];
    s.sum_lhs = summed_first(letters, right, later_than(k, letters));
    s.sum_rhs = summed_first(right, letters, later_than(k, right));
    s.lhs = reduce(so_far, s.sum_lhs, false, nullptr, mesh).result;
    s.rhs = reduce(x[static_cast<std::size_t>(k)], s.sum_rhs, false, nullptr, mesh).result;
    letters = without(letters, s.sum_lhs);
    const subscripts rhs_letters = without(right, s.sum_rhs);
    s.dims = pair_dims(letters, rhs_letters, later_than(k, letters));
    if (dot_result_rank(s.lhs, s.rhs, s.dims) > max_rank) return fail(refuse(message::shape_rank));
    const ruling ruled = out_spec == nullptr ? dot_general(s.lhs, s.rhs, s.dims, nullptr, mesh)
                                             : ruling{loose_product(s.lhs, s.rhs, s.dims)};
    if (!ruled.ok()) return fail(ruled);
    letters = pair_letters(letters, rhs_letters, s.dims);
    so_far = s.type = ruled.result;
  }
  for (int i = 0; i < text.result.count; ++i)
    plan.permutation = dim_append(plan.permutation, letters.find(text.result.letters[i]));
  plan.ruled = transpose(so_far, plan.permutation);
  if (out_spec == nullptr) return plan;
  if (const ruling chosen = with_spec(plan.ruled.result, *out_spec, mesh); !chosen.ok()) return fail(chosen);
  const spec_value natural = unpermuted(*out_spec, plan.permutation);
  einsum_step& last = plan.step[plan.steps - 1];
  const ruling ruled = text.operands == 1 ? reduce(x[0], last.sum_lhs, false, &natural, mesh)
                                          : dot_general(last.lhs, last.rhs, last.dims, &natural, mesh);
  if (!ruled.ok()) return fail(ruled);
  last.type = ruled.result;
  plan.ruled = transpose(last.type, plan.permutation);
  return plan;
}

}  // namespace tessera::sharding
