#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages the library, its tests and its examples need. Only what is missing is fetched, so on a
# machine that is ready nothing is downloaded and no rights are needed. As a user other than root it asks for sudo.
# `cmake/setup.sh --list` prints the packages and changes nothing.
set -euo pipefail

required=(g++-12 clang-19 cmake ninja-build python3 libboost1.81-dev libxtensor-dev libxsimd-dev libtbb-dev catch2
  libbenchmark-dev nlohmann-json3-dev zlib1g-dev dataset-fashion-mnist)
optional=(ccache)

if [[ ${1:-} == --list ]]; then
  printf '%s\n' "${required[@]}" "${optional[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: not a Debian system; continuing as if these were installed: ${required[*]}" >&2
  exit 0
fi

# Prints those of its arguments that are not installed.
missing() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || echo "$package"
  done
}

mapfile -t needed < <(missing "${required[@]}")
((${#needed[@]})) || exit 0
mapfile -t wanted < <(missing "${optional[@]}")

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing packages: ${needed[*]}; run as root: apt-get install ${needed[*]}" >&2
    exit 1
  fi
  echo "setup: installing ${needed[*]} with sudo" >&2
  as_root=(sudo)
fi

# Output goes to stderr, so that what a caller prints on stdout stays the program's own.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" </dev/null >&2
}
apt update
apt install -y --no-install-recommends "${needed[@]}"
((${#wanted[@]} == 0)) || apt install -y --no-install-recommends "${wanted[@]}" ||
  echo "setup: continuing without ${wanted[*]}" >&2
