// SPDX-License-Identifier: Apache-2.0
// OpenBLAS: cblas_sgemm and cblas_dgemm.
#include <cblas.h>

#include "peer.hpp"

namespace {

struct openblas final : bench::prepared {
  bench::product p;
  int threads;

  openblas(const bench::product& product, int count) : p(product), threads(count) {}

  void run() override {
    openblas_set_num_threads(threads);
    const auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n), k = static_cast<blasint>(p.k);
    const auto a_form = p.a_transposed ? CblasTrans : CblasNoTrans, b_form = p.b_transposed ? CblasTrans : CblasNoTrans;
    const blasint lda = p.a_transposed ? m : k, ldb = p.b_transposed ? k : n;
    if (p.type == bench::element::f32)
      cblas_sgemm(CblasRowMajor, a_form, b_form, m, n, k, 1, static_cast<const float*>(p.a), lda,
                  static_cast<const float*>(p.b), ldb, 0, static_cast<float*>(p.c), n);
    else
      cblas_dgemm(CblasRowMajor, a_form, b_form, m, n, k, 1, static_cast<const double*>(p.a), lda,
                  static_cast<const double*>(p.b), ldb, 0, static_cast<double*>(p.c), n);
  }
};

}  // namespace

extern "C" bench::prepared* peer_prepare(const bench::product& p, int threads) {
  return p.type == bench::element::bf16 ? nullptr : new openblas(p, threads);
}
