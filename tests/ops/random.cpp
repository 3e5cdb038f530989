// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/random.hpp>

#include "ops/support.hpp"

namespace rnd = tessera::random;
using ts::out_sharding;

extern const array<ts::u32, shape<2>> key;
extern const array<ts::u32, shape<2, 2>, P<"x">> keys;
extern const array<ts::i32, shape<>> seed;
extern const array<ts::i32, shape<4>, P<"x">> seeds;

TEST_CASE("Keys are uint32[2], made from a seed, split, folded with data") {
  STATIC_REQUIRE(TYPE(rnd::make_key(seed)) == "uint32[2]" && TYPE(rnd::make_key(seeds)) == "uint32[4@x,2]");
  STATIC_REQUIRE(TYPE(rnd::fold_in(key, seed)) == "uint32[2]" && TYPE(rnd::fold_in(keys, 7)) == "uint32[2@x,2]");
  STATIC_REQUIRE(TYPE(rnd::split(key)[1]) == "uint32[2]" && TYPE(rnd::split<3>(keys)[2]) == "uint32[2@x,2]");
  STATIC_REQUIRE(std::tuple_size_v<decltype(rnd::split<3>(key))> == 3);
}

TEST_CASE("What is drawn is uncut unless out_sharding says otherwise; keys side by side keep their cut") {
  STATIC_REQUIRE(TYPE(rnd::bits<shape<8, 12>>(key)) == "uint32[8,12]");
  STATIC_REQUIRE(TYPE(rnd::bits<shape<4>>(keys)) == "uint32[2@x,4]");
  STATIC_REQUIRE(TYPE(rnd::bits<shape<4>>(keys, out_sharding<P<none, "y">>)) == "uint32[2,4@y]");
  STATIC_REQUIRE(TYPE(rnd::bernoulli<shape<8, 12>>(key, 0.3, out_sharding<P<"x", "y">>)) == "bool[8@x,12@y]");
  STATIC_REQUIRE(TYPE(rnd::uniform<shape<8>>(key)) == "float32[8]" &&
                 TYPE(rnd::uniform<shape<8>, ts::f64>(key, -1, 1, out_sharding<P<"x">>)) == "float64[8@x]");
  STATIC_REQUIRE(TYPE(rnd::normal<shape<>>(key)) == "float32[]" && TYPE(rnd::normal<shape<0>>(key)) == "float32[0]");
  STATIC_REQUIRE(TYPE(rnd::truncated_normal<shape<8>>(key, -1, 3)) == "float32[8]");
  STATIC_REQUIRE(TYPE(rnd::randint<shape<8>>(key, 0, 10)) == "int32[8]" &&
                 TYPE(rnd::randint<shape<8>, ts::u32>(key, 0, 10)) == "uint32[8]");
  STATIC_REQUIRE(TYPE(rnd::permutation<100>(key)) == "int32[100]");
}

template <class Shape, class OutSpec = void>
constexpr auto rule = rnd::detail::draw_rule<Shape, ts::f32, OutSpec>;

TEST_CASE("What is no key draws nothing; nor does a key draw more than 2^32 elements") {
  STATIC_REQUIRE(fault<rule<shape<4>>, decltype(row)> == message::random_key);
  STATIC_REQUIRE(fault<rule<shape<4>>, decltype(seed)> == message::random_key);
  STATIC_REQUIRE(fault<rule<shape<4>>, array<ts::u32, shape<2>, P<"x">>> == message::random_key);
  STATIC_REQUIRE(fault<rule<shape<65536, 65536>>, decltype(key)> == message::none);
  STATIC_REQUIRE(fault<rule<shape<65536, 65537>>, decltype(key)> == message::random_size);
  STATIC_REQUIRE(fault<rule<shape<6>, P<"y">>, decltype(key)> == message::spec_indivisible);
  STATIC_REQUIRE(fault<rnd::detail::key_rule, decltype(ints)> == message::random_key);
}
