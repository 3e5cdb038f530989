// SPDX-License-Identifier: Apache-2.0
// Ten compile-time sentences, for clang: core/diagnose.hpp includes this file until all have been said, ten further on
// each time. Sentence 10 of the sequence is that of
// message TESSERA_MESSAGE_AT(10).
#if defined(TESSERA_SENTENCES)
#if BOOST_PP_SLOT(1) * 10 + 10 <= BOOST_PP_SEQ_SIZE(TESSERA_SENTENCES)

template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 0)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 0), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 0)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 0), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 1)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 1), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 1)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 1), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 2)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 2), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 2)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 2), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 3)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 3), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 3)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 3), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 4)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 4), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 4)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 4), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 5)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 5), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 5)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 5), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 6)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 6), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 6)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 6), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 7)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 7), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 7)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 7), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 8)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 8), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 8)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 8), TESSERA_SENTENCES));
  }
};
template <text... Details>
struct diagnosis<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 9)), Details...> {
  static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 9), TESSERA_SENTENCES));
};
template <text... Details>
struct refused_result<TESSERA_MESSAGE_AT(BOOST_PP_CAT(BOOST_PP_SLOT(1), 9)), Details...> : poison {
  constexpr ~refused_result() {
    static_assert(holds<Details...>, BOOST_PP_SEQ_ELEM(BOOST_PP_CAT(BOOST_PP_SLOT(1), 9), TESSERA_SENTENCES));
  }
};

#define BOOST_PP_VALUE BOOST_PP_SLOT(1) + 1
#include BOOST_PP_ASSIGN_SLOT(1)
#endif
#endif
