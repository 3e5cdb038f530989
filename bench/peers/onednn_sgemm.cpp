// SPDX-License-Identifier: Apache-2.0
// oneDNN: dnnl_sgemm.
#include <dnnl.h>
#include <omp.h>

#include "peer.hpp"

namespace {

struct onednn_sgemm final : bench::prepared {
  bench::product p;
  int threads;

  onednn_sgemm(const bench::product& product, int count) : p(product), threads(count) {}

  void run() override {
    omp_set_num_threads(threads);
    dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1, static_cast<const float*>(p.a),
               p.a_transposed ? p.m : p.k, static_cast<const float*>(p.b), p.b_transposed ? p.k : p.n, 0,
               static_cast<float*>(p.c), p.n);
  }
};

}  // namespace

extern "C" bench::prepared* peer_prepare(const bench::product& p, int threads) {
  return p.type == bench::element::f32 ? new onednn_sgemm(p, threads) : nullptr;
}
