// SPDX-License-Identifier: Apache-2.0
// expect: tessera: checkpoint: no value in the function carries a name that the policy lists; call checkpoint_name with it
//         or drop it
// note: mlp_hiden
// options: -Werror=deprecated-declarations
#include "policy_names.hpp"

using policy = ts::names<CURE(("mlp_hiden"), ("mlp_hidden"))>;
static_assert(program<ts::save_and_offload_only_these_names<ts::names<>, policy>>::collectives().all_gather == 0);
static_assert(program<ts::optional_names<ts::save_only_these_names<"scores">>>::collectives().all_gather == 0);
