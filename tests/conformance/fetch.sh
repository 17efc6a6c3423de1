#!/bin/bash
# fetch.sh DIR: the race tests of valgrind (helgrind, drd), GCC 12 and LLVM 16 from Debian's source packages, unpacked under DIR.
# apt-get verifies what it downloads; it works with lists, cache and configuration of its own below DIR, so that the machine's
# are left as they are. The mirror is the one the machine uses. A second call finds everything there and does nothing.
set -euo pipefail
release=bookworm
packages=(valgrind gcc-12 llvm-toolchain-16)
dir=$1
# The marker says which packages are there, so that an older folder without one of them does not count.
complete() { [ "$(cat "$dir/complete" 2>/dev/null)" = "${packages[*]}" ]; }
complete && exit 0
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 9>"$dir/lock"
flock 9
complete && exit 0

mirror=$(apt-get indextargets --format "\$(RELEASE) \$(COMPONENT) \$(REPO_URI)" 'Created-By: Packages' |
  awk -v release=$release '$1 == release && $2 == "main" {print $3; exit}')
if [ -z "$mirror" ]; then
  echo "conformance: apt is configured with no mirror of Debian $release main; the tests' sources come from there" >&2
  exit 1
fi
keys=/usr/share/keyrings/debian-archive-keyring.gpg
rm -rf "$dir/apt"
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial" "$dir/download"
echo "deb-src [signed-by=$keys] $mirror $release main" >"$dir/apt/sources.list"
own=(-o "Dir::Etc::SourceList=$dir/apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$dir/apt/lists"
  -o "Dir::Cache=$dir/apt/cache" -o APT::Sandbox::User= -o Acquire::Languages=none -o Acquire::Retries=3)

echo "conformance: downloading the source packages ${packages[*]} (about 250 MB)" >&2
if ! { apt-get -qq "${own[@]}" update &&
  cd "$dir/download" && apt-get -qq "${own[@]}" source --download-only "${packages[@]}"; } >"$dir/apt.log" 2>&1; then
  tail -n 20 "$dir/apt.log" >&2
  echo "conformance: apt-get failed; the lines above say why" >&2
  exit 1
fi

echo "conformance: unpacking the tests" >&2
rm -rf "$dir/valgrind" "$dir/gcc" "$dir/llvm"
mkdir -p "$dir/valgrind" "$dir/gcc" "$dir/llvm"
tar -xf valgrind_*.orig.tar.* -C "$dir/valgrind" --strip-components=1 --wildcards \
  '*/helgrind/tests' '*/drd/tests' '*/include' '*/helgrind/*.h' '*/drd/*.h' '*/tests/*.h' '*/config.h.in' '*/COPYING'
# GCC's is a tar in a tar, of which 1 MB in 700 is wanted.
inner=$(tar -tf gcc-12_*.orig.tar.* | grep -m1 -E '/gcc-12.*\.tar\.[a-z0-9]+$' || true)
tar -xOf gcc-12_*.orig.tar.* "$inner" | tar -xJ -C "$dir/gcc" --strip-components=3 --wildcards \
  '*/gcc/testsuite/c-c++-common/tsan' '*/gcc/testsuite/g++.dg/tsan' '*/gcc/testsuite/gcc.dg/tsan'
tar -xf llvm-toolchain-16_*.orig.tar.* -C "$dir/llvm" --strip-components=2 --wildcards \
  '*/compiler-rt/test/tsan' '*/compiler-rt/test/sanitizer_common/*.h' '*/compiler-rt/include/sanitizer'
rm -rf "$dir/download" "$dir/apt"
echo "${packages[*]}" >"$dir/complete"
