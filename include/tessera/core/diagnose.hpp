// SPDX-License-Identifier: Apache-2.0
// How a sentence of ours becomes the first error of a compiler.
#pragma once

#include <tessera/core/messages.hpp>
#include <tessera/core/text.hpp>

namespace tessera {

/// Never defined: g++ prints the sentence when it asks for the size of this.
template <text Sentence>
struct compile_error;

/// Always false: clang prints the pieces of text beside the sentence of a static_assert.
template <text... Details>
inline constexpr bool holds = false;

#if defined(__clang__)

/// Instantiating it fails with the sentence of M; the details stand beside it.
template <message M, text... Details>
struct diagnosis;
#define TESSERA_DIAGNOSIS(name, sentence)               \
  template <text... Details>                            \
  struct diagnosis<message::name, Details...> {         \
    static_assert(holds<Details...>, sentence);         \
    static constexpr bool reported = true;              \
  };
TESSERA_MESSAGES(TESSERA_DIAGNOSIS)
#undef TESSERA_DIAGNOSIS

/// Clang prints a text of at most 31 characters as text: the piece of `All` that starts at `From`, cut after a comma
/// or a blank where there is one.
template <text All, std::size_t From>
constexpr std::size_t piece_end() {
  constexpr std::size_t longest = 31;
  if (All.length - From <= longest) return All.length;
  for (std::size_t end = From + longest; end > From + 1; --end)
    if (All.chars[end - 1] == ' ' || All.chars[end - 1] == ',') return end;
  return From + longest;
}

template <text All, std::size_t From, std::size_t To>
constexpr auto piece() {
  text<To - From + 1> result;
  for (std::size_t i = From; i < To; ++i) result.chars[i - From] = All.chars[i];
  result.chars[To - From] = '\0';
  return result;
}

template <message M, text All, std::size_t From = 0, text... Pieces>
constexpr bool diagnose_in_pieces() {
  if constexpr (From >= All.length) {
    return diagnosis<M, Pieces...>::reported;
  } else {
    constexpr std::size_t to = piece_end<All, From>();
    return diagnose_in_pieces<M, All, to, Pieces..., piece<All, From, to>()>();
  }
}

/// Stops the build with the sentence of M and the details that Make writes.
template <message M, auto Make>
constexpr bool diagnose() {
  return diagnose_in_pieces<M, exact_text<Make>()>();
}

#else

/// Stops the build with the sentence of M and the details that Make writes.
template <message M, auto Make>
constexpr bool diagnose() {
  constexpr auto whole = [] {
    text_buffer buffer;
    const text_buffer details = Make();
    buffer << sentence(M);
    if (details.size > 0) buffer << " [" << details.view() << "]";
    return buffer;
  };
  [[maybe_unused]] constexpr std::size_t shown = sizeof(compile_error<exact_text<whole>()>);
  return true;
}

#endif

/// Details of a message that needs none; it depends on T so that the check waits for T.
template <class T>
inline constexpr auto no_details = [] { return text_buffer{}; };

}  // namespace tessera
