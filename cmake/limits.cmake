# SPDX-License-Identifier: Apache-2.0
# Options every program that uses the library is compiled with: no contraction, so that fused and unfused kernels give
# the same bits, and room for traces and passes that run inside the compiler.
set(TESSERA_GNU_OPTIONS
  -ffp-contract=off
  -fconstexpr-ops-limit=4000000000
  -fconstexpr-loop-limit=100000000
  -fconstexpr-depth=4096
  -ftemplate-depth=2048)
set(TESSERA_CLANG_OPTIONS
  -ffp-contract=off
  -fconstexpr-steps=2000000000
  -fconstexpr-depth=4096
  -ftemplate-depth=2048
  -fbracket-depth=1024)
# xtensor 0.24 specialises its containers in a way that clang 19's matching of template template arguments, new there,
# finds ambiguous; a file that includes xtensor needs the matching of clang 18.
set(TESSERA_CLANG_XTENSOR_OPTIONS
  -fno-relaxed-template-template-args
  -Wno-deprecated-no-relaxed-template-template-args)
