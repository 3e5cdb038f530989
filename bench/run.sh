#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up the machine, builds the benchmarks and runs them: bench/run.sh [name...] (all by default; `compile` measures
# what the compiler costs). Prints lines `name=value`.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
names=("$@")
if ((${#names[@]} == 0)); then
  for path in "$folder"/*.cpp; do
    [[ ! -e $path ]] || names+=("$(basename "$path" .cpp)")
  done
  names+=(compile)
fi
targets=()
for name in "${names[@]}"; do
  [[ $name != compile ]] || continue
  if [[ ! -e $folder/$name.cpp ]]; then
    echo "bench/run.sh: no benchmark '$name'" >&2
    exit 2
  fi
  targets+=("bench_$name")
done

source "$folder/../cmake/build_env.sh"
configure
((${#targets[@]} == 0)) || quietly build "${targets[@]}"
for name in "${names[@]}"; do
  if [[ $name == compile ]]; then
    python3 "$folder/compile_cost.py" "$build_dir"
  else
    "$build_dir/bench/bench_$name"
  fi
done
