// SPDX-License-Identifier: Apache-2.0
// oneDNN: its matmul primitive on operands as they lie in memory.
#include <dnnl.hpp>
#include <omp.h>

#include "peer.hpp"

namespace {

struct onednn final : bench::prepared {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::memory a, b, c;
  dnnl::matmul multiply;
  int threads;

  onednn(const bench::product& p, int count) : threads(count) {
    omp_set_num_threads(threads);
    using type = dnnl::memory::data_type;
    using tag = dnnl::memory::format_tag;
    const type in = p.type == bench::element::f32 ? type::f32 : type::bf16;
    const dnnl::memory::desc a_like({p.m, p.k}, in, p.a_transposed ? tag::ba : tag::ab);
    const dnnl::memory::desc b_like({p.k, p.n}, in, p.b_transposed ? tag::ba : tag::ab);
    const dnnl::memory::desc c_like({p.m, p.n}, type::f32, tag::ab);
    a = dnnl::memory(a_like, engine, const_cast<void*>(p.a));
    b = dnnl::memory(b_like, engine, const_cast<void*>(p.b));
    c = dnnl::memory(c_like, engine, p.c);
    multiply = dnnl::matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a_like, b_like, c_like), engine));
  }

  void run() override {
    omp_set_num_threads(threads);
    multiply.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
};

}  // namespace

extern "C" bench::prepared* peer_prepare(const bench::product& p, int threads) {
  return p.type == bench::element::f64 ? nullptr : new onednn(p, threads);
}
