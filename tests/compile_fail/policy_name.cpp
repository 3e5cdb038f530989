// SPDX-License-Identifier: Apache-2.0
// expect: tessera: checkpoint: no value in the function carries a name that the policy lists; call checkpoint_name with it
//         or drop it
// note: mlp_hiden
#include "policy_names.hpp"

static_assert(program<ts::strict_names<ts::save_only_these_names<CURE(("mlp_hiden"), ("mlp_hidden"))>>>::collectives()
                  .all_gather == 0);
