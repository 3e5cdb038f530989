#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up the machine, builds everything and runs every test. Arguments are passed on to ctest: tests/run.sh -R gemm.
# TESSERA_PRESET=asan (debug, tsan) and CXX=clang++-19 choose another build.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/build_env.sh"
configure
build
ctest --test-dir "$build_dir" -j "${TESSERA_TEST_JOBS:-2}" --output-on-failure --no-tests=error "$@"
