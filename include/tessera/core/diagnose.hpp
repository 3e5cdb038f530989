// SPDX-License-Identifier: Apache-2.0
// How a sentence of ours becomes the first error of a compiler, and the only one.
#pragma once

#include <tessera/core/messages.hpp>
#include <tessera/core/text.hpp>

#include <type_traits>
#include <utility>

#if defined(__clang__)
#include <boost/preprocessor/cat.hpp>
#include <boost/preprocessor/seq/elem.hpp>
#include <boost/preprocessor/seq/size.hpp>
#include <boost/preprocessor/slot/slot.hpp>
#endif

namespace tessera {

/// What an operation returns after it reported an error; it silences all that follow.
struct poison {};

#if defined(__clang__)

/// Always false: clang prints its arguments beside the sentence of a static_assert.
template <text... Details>
inline constexpr bool holds = false;

/// Completing it fails with the sentence of M; the details stand beside it.
template <message M, text... Details>
struct diagnosis;

/// What a refused operation is declared to return: its destructor fails with the sentence. A call names the destructor
/// of what it returns, so the sentence is said where the call stands, and the call itself is not wrong.
template <message M, text... Details>
struct refused_result;

#define TESSERA_ONE_ROW(name, sentence) +1
inline constexpr int messages_of_part_1 = TESSERA_MESSAGES_1(TESSERA_ONE_ROW);
inline constexpr int messages_of_both = TESSERA_MESSAGES(TESSERA_ONE_ROW);
#undef TESSERA_ONE_ROW

/// The message of sentence n of a part, whose messages are those behind First up to Last; what fills the sequence up is
/// none.
template <int First, int Last>
constexpr message message_at(int n) {
  const int place = First + n - 9;
  return static_cast<message>(place <= Last ? place : 60000 + place);
}

// The specialisations, ten at a time, in a file where no macro stands around an assertion: clang adds notes on every
// macro, and a line for every file that an error lies in.
#define TESSERA_TEN_TIMES(x) x x x x x x x x x x
#define TESSERA_SENTENCE_OF_ROW(name, sentence) (sentence)
#define TESSERA_SENTENCES TESSERA_TEN_TIMES(("")) TESSERA_MESSAGES_1(TESSERA_SENTENCE_OF_ROW) TESSERA_TEN_TIMES((""))
#define TESSERA_MESSAGE_AT(n) message_at<0, messages_of_part_1>(n)
#define BOOST_PP_VALUE 1
#include BOOST_PP_ASSIGN_SLOT(1)
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
static_assert(BOOST_PP_SLOT(1) * 10 + 10 > BOOST_PP_SEQ_SIZE(TESSERA_SENTENCES), "more lines above are needed");
#undef TESSERA_MESSAGE_AT
#undef TESSERA_SENTENCES
#define TESSERA_SENTENCES TESSERA_TEN_TIMES(("")) TESSERA_MESSAGES_2(TESSERA_SENTENCE_OF_ROW) TESSERA_TEN_TIMES((""))
#define TESSERA_MESSAGE_AT(n) message_at<messages_of_part_1, messages_of_both>(n)
#define BOOST_PP_VALUE 1
#include BOOST_PP_ASSIGN_SLOT(1)
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
#include <tessera/core/ten_diagnoses.hpp>
static_assert(BOOST_PP_SLOT(1) * 10 + 10 > BOOST_PP_SEQ_SIZE(TESSERA_SENTENCES), "more lines above are needed");
#undef TESSERA_MESSAGE_AT
#undef TESSERA_SENTENCES
#undef TESSERA_SENTENCE_OF_ROW
#undef TESSERA_TEN_TIMES

/// A text cut into pieces of at most 31 characters, which clang prints as text: after a comma or a blank where there is
/// one. Piece i goes from ends[i] to ends[i + 1].
struct text_cuts {
  std::size_t count = 0;
  std::size_t ends[text_buffer::capacity]{};

  constexpr explicit text_cuts(std::string_view all) {
    constexpr std::size_t longest = 31;
    while (ends[count] < all.size()) {
      const std::string_view left = all.substr(ends[count]);
      const std::size_t gap = left.size() > longest ? left.substr(0, longest).find_last_of(" ,") : left.size() - 1;
      ends[count + 1] = ends[count] + (gap == std::string_view::npos ? longest : gap + 1);
      ++count;
    }
  }
};

template <text All, std::size_t From, std::size_t To>
constexpr auto piece() {
  text<To - From + 1> result;
  for (std::size_t i = From; i < To; ++i) result.chars[i - From] = All.chars[i];
  result.chars[To - From] = '\0';
  return result;
}

/// A null pointer to the type that says M with the details All.
template <template <message, text...> class Says, message M, text All>
constexpr auto* saying() {
  constexpr text_cuts cuts(All.view());
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return static_cast<Says<M, piece<All, cuts.ends[I], cuts.ends[I + 1]>()...>*>(nullptr);
  }
  (std::make_index_sequence<cuts.count>{});
}
template <message M, auto Make>
inline constexpr auto* report = saying<diagnosis, M, exact_text<Make>()>();

#if !defined(TESSERA_SILENT_REFUSALS)
/// The type that an operation refused with M is declared to return, a poison; see refused_result.
template <message M, auto Make>
using refusal = std::remove_pointer_t<decltype(saying<refused_result, M, exact_text<Make>()>())>;
#endif

#else

/// Never defined: g++ prints the sentence when it is asked for the size of this.
template <text Sentence>
struct compile_error;

/// Completing it fails with the sentence.
template <text Sentence>
struct diagnosis : poison {
  static_assert(sizeof(compile_error<Sentence>) > 0);
};

template <message M, auto Make>
constexpr text_buffer whole_sentence() {
  text_buffer buffer;
  const text_buffer details = Make();
  buffer << sentence(M);
  if (details.size > 0) buffer << " [" << details.view() << "]";
  return buffer;
}
template <message M, auto Make>
inline constexpr diagnosis<exact_text<whole_sentence<M, Make>>()>* report = nullptr;

#if !defined(TESSERA_SILENT_REFUSALS)
/// The type that an operation refused with M is declared to return, a poison: the call completes it.
template <message M, auto Make>
using refusal = diagnosis<exact_text<whole_sentence<M, Make>>()>;
#endif

#endif

#if defined(TESSERA_SILENT_REFUSALS)
/// For tests that look at many refusals in one file: a refused operation gives a type with its message.
template <message M>
struct silent_refusal : poison {
  static constexpr message failure = M;
};
template <message M, auto Make>
using refusal = silent_refusal<M>;
#endif

/// `diagnose(report<message::mesh_mismatch, details>)` in a template stops the build with the sentence of the message
/// and the text that details() writes. Looking up this unqualified name completes the type that the argument points to,
/// and that is all: no expression is wrong, so the function around it stays a constant one and nothing else is
/// reported. One sentence is said once, wherever it comes from.
constexpr bool diagnose(const void*) { return true; }

template <class T>
inline constexpr bool is_poison = false;
template <>
inline constexpr bool is_poison<poison> = true;
#if defined(TESSERA_SILENT_REFUSALS)
template <message M>
inline constexpr bool is_poison<silent_refusal<M>> = true;
#elif defined(__clang__)
template <message M, text... Details>
inline constexpr bool is_poison<refused_result<M, Details...>> = true;
#else
template <text Sentence>
inline constexpr bool is_poison<diagnosis<Sentence>> = true;
#endif

/// Details of a message that needs none; it depends on T so that the check waits for T.
template <class T>
inline constexpr auto no_details = [] { return text_buffer{}; };

}  // namespace tessera
