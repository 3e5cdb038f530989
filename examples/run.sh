#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up the machine, builds one example and runs it: examples/run.sh <name> [arguments...]
# A mesh is a type, so `fashion` is one program per mesh: --mesh one|data=8|data=2,model=4 picks it (default data=8).
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Prints the names a user may give.
names() {
  local path
  for path in "$folder"/*.cpp "$folder"/fashion/data8.cpp; do
    [[ -e $path ]] || continue
    [[ $path == */fashion/* ]] && echo fashion || basename "$path" .cpp
  done | sort -u
}

usage() {
  echo "usage: examples/run.sh <name> [arguments...]; names: $(names | paste -sd' ')"
}

case ${1:-} in
  "") usage >&2; exit 2 ;;
  -h | --help) usage; exit 0 ;;
esac
name=$1
shift

if ! names | grep -qxF -- "$name"; then
  echo "examples/run.sh: no example '$name'; names: $(names | paste -sd' ')" >&2
  exit 2
fi

target=$name
if [[ $name == fashion ]]; then
  mesh=data=8
  previous=
  for argument in "$@"; do
    [[ $previous != --mesh ]] || mesh=$argument
    [[ $argument != --mesh=* ]] || mesh=${argument#--mesh=}
    previous=$argument
  done
  case $mesh in
    one) target=fashion_one ;;
    data=8) target=fashion_data8 ;;
    data=2,model=4) target=fashion_data2_model4 ;;
    *) echo "fashion: --mesh is '$mesh'; it must be one, data=8 or data=2,model=4" >&2; exit 2 ;;
  esac
fi

source "$folder/../cmake/build_env.sh"
configure
quietly build "$target"
exec "$build_dir/examples/$target" "$@"
