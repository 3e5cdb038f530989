# SPDX-License-Identifier: Apache-2.0
# Sourced by the run.sh scripts: sets up the machine and offers configure() and build(). TESSERA_PRESET (release) and
# CXX (g++-12 where it exists) choose what is built; everything lands in build/<preset>.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/cmake/setup.sh"

preset=${TESSERA_PRESET:-release}
build_dir=$root/build/$preset
jobs=${TESSERA_JOBS:-$(nproc)}
if [[ -z ${CXX:-} ]]; then
  CXX=$(command -v g++-12 || command -v g++)
fi
export CXX
if [[ -z ${CMAKE_GENERATOR:-} ]] && command -v ninja >/dev/null; then
  export CMAKE_GENERATOR=Ninja
fi

# Runs a command quietly; if it fails, shows what it said and passes the failure on.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  ((status == 0)) || cat "$log" >&2
  rm -f "$log"
  return "$status"
}

# configure [cmake options...]: (re)configures build/<preset>; a folder made with another compiler is started afresh.
configure() {
  local cache=$build_dir/CMakeCache.txt fresh=()
  if [[ -f $cache ]]; then
    local before
    before=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$cache")
    [[ $before == "$(command -v "$CXX")" ]] || fresh=(--fresh)
    unset CMAKE_GENERATOR
  fi
  quietly cmake -S "$root" --preset "$preset" "${fresh[@]}" "$@"
}

# build [targets...]: builds everything, or just the targets, saying little.
build() {
  local targets=()
  (($# == 0)) || targets=(--target "$@")
  cmake --build "$build_dir" -j "$jobs" "${targets[@]}"
}
