#!/bin/bash
# fetch.sh DIR: Debian's cloud kernel and a static busybox, downloaded by apt-get and only unpacked, under DIR.
# Nothing is installed. A second call finds everything there and does nothing.
set -euo pipefail
dir=$1
[ -e "$dir/complete" ] && exit 0
mkdir -p "$dir"
cd "$dir"
exec 9>lock # two machines may start at once
flock 9
[ -e complete ] && exit 0
meta_package=linux-image-cloud-amd64
kernel_package() { apt-cache depends "$meta_package" 2>/dev/null | awk '/Depends: linux-image-/ {print $2; exit}'; }
package=$(kernel_package)
if [ -z "$package" ]; then
  echo "kvm-amd: refreshing the package lists" >&2
  if [ "$(id -u)" = 0 ]; then apt-get update -qq; else sudo apt-get update -qq; fi
  package=$(kernel_package)
fi
if [ -z "$package" ]; then
  echo "kvm-amd: apt knows no package $meta_package; this lane needs Debian 12's package lists" >&2
  exit 1
fi
echo "kvm-amd: downloading $package and busybox-static" >&2
if ! apt-get download -qq "$package" busybox-static >apt.log 2>&1; then
  cat apt.log >&2
  echo "kvm-amd: apt-get download failed; run apt-get update and try again" >&2
  exit 1
fi
rm -rf kernel busybox
for archive in "$package"_*.deb; do dpkg -x "$archive" kernel; done
for archive in busybox-static_*.deb; do dpkg -x "$archive" busybox; done
rm -f ./*.deb
touch complete
