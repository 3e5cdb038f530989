// SPDX-License-Identifier: Apache-2.0
// libxsmm: kernels made for the very sizes, and its product for many threads. It stores matrices by columns, so B comes
// first.
#include <libxsmm.h>
#include <omp.h>

#include <cstdint>

#include "peer.hpp"

namespace {

/// One kernel for the whole product, on one thread.
struct whole_kernel final : bench::prepared {
  bench::product p;
  libxsmm_smmfunction kernel;

  whole_kernel(const bench::product& product, libxsmm_smmfunction found) : p(product), kernel(found) {}

  void run() override {
    kernel(static_cast<const float*>(p.b), static_cast<const float*>(p.a), static_cast<float*>(p.c));
  }
};

struct tiled final : bench::prepared {
  bench::product p;
  int threads;

  tiled(const bench::product& product, int count) : p(product), threads(count) {}

  void run() override {
    omp_set_num_threads(threads);
    const auto m = static_cast<libxsmm_blasint>(p.m), n = static_cast<libxsmm_blasint>(p.n);
    const auto k = static_cast<libxsmm_blasint>(p.k);
    const libxsmm_blasint lda = p.a_transposed ? m : k, ldb = p.b_transposed ? k : n;
    const char a_form = p.a_transposed ? 'T' : 'N', b_form = p.b_transposed ? 'T' : 'N';
    const float one = 1, zero = 0;
    libxsmm_sgemm_omp(&b_form, &a_form, &n, &m, &k, &one, static_cast<const float*>(p.b), &ldb,
                      static_cast<const float*>(p.a), &lda, &zero, static_cast<float*>(p.c), &n);
  }
};

}  // namespace

extern "C" bench::prepared* peer_prepare(const bench::product& p, int threads) {
  if (p.type != bench::element::f32) return nullptr;
  if (threads == 1 && !p.a_transposed && !p.b_transposed) {
    const auto m = static_cast<libxsmm_blasint>(p.m), n = static_cast<libxsmm_blasint>(p.n);
    const auto k = static_cast<libxsmm_blasint>(p.k);
    const float one = 1, zero = 0;
    const int flags = LIBXSMM_GEMM_FLAG_NONE;
    if (const auto kernel = libxsmm_smmdispatch(n, m, k, &n, &k, &n, &one, &zero, &flags, nullptr))
      return new whole_kernel(p, kernel);
  }
  // Small transposed products it hands to a BLAS, which is not there; then it computes nothing, or crashes.
  constexpr std::int64_t handed_on = std::int64_t{1} << 19;
  if ((p.a_transposed || p.b_transposed) && p.m * p.n * p.k < handed_on) return nullptr;
  return new tiled(p, threads);
}
