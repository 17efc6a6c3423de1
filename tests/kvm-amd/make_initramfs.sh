#!/bin/bash
# make_initramfs.sh FETCHED OUT INIT "MODULE..." PROGRAM...: an initramfs with busybox, kernel modules under /modules,
# INIT as process 1, and the programs with their shared libraries. Each PROGRAM is SOURCE=TARGET, TARGET being its path inside.
set -euo pipefail
fetched=$(realpath "$1")
out=$(realpath -m "$2")
init=$(realpath "$3")
modules=$4
shift 4
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,proc,sys,tmp,modules,lib64,scratch,etc}

cp "$fetched/busybox/bin/busybox" "$root/bin/"
"$fetched/busybox/bin/busybox" --list | while read -r applet; do
  [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done

for module in $modules; do
  file=$(find "$fetched/kernel/lib/modules" -name "$module.ko*" -print -quit)
  case $file in
    *.ko) cp "$file" "$root/modules/$module.ko" ;;
    *.xz) xz -dc "$file" >"$root/modules/$module.ko" ;;
    *.zst) zstd -qdc "$file" >"$root/modules/$module.ko" ;;
    *) echo "kvm-amd: the kernel package has no module $module" >&2; exit 1 ;;
  esac
done

copy_library() { # as the loader will look for it, links resolved
  [ -e "$root$1" ] && return
  mkdir -p "$root$(dirname "$1")"
  cp -L "$1" "$root$1"
}
for program in "$@"; do
  source=${program%%=*}
  target=$root${program#*=}
  mkdir -p "$(dirname "$target")"
  rm -f "$target" # it may be a link to busybox
  cp -L "$source" "$target"
  strip --strip-debug "$target" 2>/dev/null || true # debug information only makes the boot longer
  libraries=$(ldd "$source" 2>/dev/null | grep -oE '/[^ ]+\.so[^ ]*' || true) # none: static, or a script
  for library in $libraries; do copy_library "$library"; done
done
libgcc=$(gcc -print-file-name=libgcc_s.so.1) # loaded late, by pthread_cancel
copy_library /lib64/ld-linux-x86-64.so.2
[ -e "$libgcc" ] && mkdir -p "$root/lib/x86_64-linux-gnu" && cp -L "$libgcc" "$root/lib/x86_64-linux-gnu/"

cp "$init" "$root/init"
chmod +x "$root/init"
(cd "$root" && find . -print0 | LC_ALL=C sort -z | cpio --null -o -H newc --quiet) >"$out"
