#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the scripts a user starts, up to the point where they would build something.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
unset TESSERA_PRESET CXX CMAKE_GENERATOR

# expect <exit code> <text its output contains> <command...>
expect() {
  local code=$1 text=$2 status=0 said
  shift 2
  said=$("$@" 2>&1 </dev/null) || status=$?
  if ((status != code)) || [[ $said != *"$text"* ]]; then
    printf 'failed: %s\n  expected exit code %s and: %s\n' "$*" "$code" "$text"
    printf '  got exit code %s and: %s\n' "$status" "$said"
    failures=$((failures + 1))
  fi
}

# A program that stands in for another: fake <name> <script body>
fake() {
  printf '#!/bin/bash\n%s\n' "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}

for script in "$root"/{tests,examples,bench}/run.sh "$root"/cmake/*.sh "$root"/.ci/run; do
  expect 0 "" bash -n "$script"
done
for script in "$root"/{tests,examples,bench}/run.sh "$root"/cmake/setup.sh "$root"/.ci/run; do
  expect 0 "" test -x "$script"
done

expect 2 "usage: examples/run.sh <name>" "$root/examples/run.sh"
expect 0 "usage: examples/run.sh <name>" "$root/examples/run.sh" --help
expect 2 "no example 'nonsense'" "$root/examples/run.sh" nonsense
expect 2 "no benchmark 'nonsense'" "$root/bench/run.sh" nonsense

# A copy whose only examples are stubs and whose cmake is a recorder, so that the choice of a program can be seen.
copy=$scratch/copy
mkdir -p "$scratch/bin" "$copy/examples/fashion" "$copy/cmake" "$copy/build/release/examples"
cp "$root/examples/run.sh" "$copy/examples/"
cp "$root/cmake/build_env.sh" "$copy/cmake/"
printf '#!/bin/bash\n' >"$copy/cmake/setup.sh"
chmod +x "$copy/cmake/setup.sh"
touch "$copy/examples/fashion/data8.cpp" "$copy/examples/other.cpp"
fake cmake "echo \"cmake \$*\" >>$scratch/cmake.log"
for target in fashion_one fashion_data8 fashion_data2_model4 other; do
  printf '#!/bin/bash\necho "%s got $*"\n' "$target" >"$copy/build/release/examples/$target"
  chmod +x "$copy/build/release/examples/$target"
done
run() { PATH=$scratch/bin:$PATH "$copy/examples/run.sh" "$@"; }

expect 0 "fashion_data8 got --epochs 1" run fashion --epochs 1
expect 0 "fashion_one got --mesh one --epochs 1" run fashion --mesh one --epochs 1
expect 0 "fashion_data8 got --seed 3 --mesh data=8" run fashion --seed 3 --mesh data=8
expect 0 "fashion_data2_model4 got --mesh=data=2,model=4" run fashion --mesh=data=2,model=4
expect 0 "other got --mesh nonsense" run other --mesh nonsense
expect 2 "fashion: --mesh is 'data=4'; it must be one, data=8 or data=2,model=4" run fashion --mesh data=4
rm "$scratch/cmake.log"
run fashion --mesh data=2,model=4 >"$scratch/said"
expect 0 "--target fashion_data2_model4" grep -e --build "$scratch/cmake.log"

# A build that fails shows what the compiler said and ends the script.
fake cmake 'echo "the reason"; exit 1'
expect 1 "the reason" run other

# Setup on a machine that lacks one package: what it asks of apt, and what it says without root or sudo.
fake dpkg-query '[[ ${*: -1} == catch2 ]] && exit 1; echo installed'
fake apt-get "echo \"apt-get \$*\" >>$scratch/apt.log"
setup() { PATH=$scratch/bin:$PATH "$root/cmake/setup.sh"; }
if ((EUID == 0)); then
  expect 0 "" setup
  expect 0 "update" sed -n 1p "$scratch/apt.log"
  expect 0 "install -y --no-install-recommends catch2" sed -n 2p "$scratch/apt.log"
  expect 0 "2" grep -c . "$scratch/apt.log"
  fake apt-get 'exit 100'
  expect 100 "" setup
fi
fake dpkg-query 'echo installed'
fake apt-get 'exit 100'
expect 0 "" setup
expect 0 "libxtensor-dev" "$root/cmake/setup.sh" --list

((failures == 0)) && echo "scripts: all as expected"
exit "$failures"
