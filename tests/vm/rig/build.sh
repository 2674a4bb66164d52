#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Build a qemu-system-x86_64 with emulated AMD IBS from Debian 12's QEMU source.
#
#   ./build.sh            build into the cache; nothing to do when up to date
#   ./build.sh --check    only print where it is; exit status 1: not built
#   ./build.sh --deps     first install what building and running need (root)
#   ./build.sh --plugins  the same QEMU, slower, for run.sh --plugin; kept beside the other
#
# Environment:
#   IBSRIG_CACHE      default ${XDG_CACHE_HOME:-$HOME/.cache}/qemu-ibs
#   IBSRIG_APT_OPTS   extra options for apt-get and apt-cache
#   IBSRIG_QEMU_SRC   an unpacked, unpatched QEMU 7.2 tree to use instead
#   JOBS              parallel compile jobs (default: nproc)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

configure=(--target-list=x86_64-softmmu --without-default-features
    --enable-tcg --disable-kvm --disable-docs --disable-tools
    --enable-fdt=system --disable-werror)
if [ "${1:-}" = --plugins ]; then
    shift
    configure+=(--enable-plugins)
fi
patches=("$here"/{ibs,many-cpus,code-stores,core-pmu,coherence,cmpxchg-flags,timed,contention}.patch)
# one directory for each set of patches: checkouts of different ones share the cache
bin=$cache/bin-$({ cat "${patches[@]}"; echo "${configure[*]}"; } | sha256sum | cut -c1-16)
qemu=$bin/qemu-system-x86_64

up_to_date() {
    [ -x "$qemu" ]
}

install_deps() {
    export DEBIAN_FRONTEND=noninteractive
    # indextargets lists only what has been downloaded
    if [ -z "$(apt-get ${IBSRIG_APT_OPTS:-} indextargets 'Created-By: Packages')" ]; then
        apt-get ${IBSRIG_APT_OPTS:-} -qq update
    fi
    apt-get ${IBSRIG_APT_OPTS:-} install -qq -y --no-install-recommends \
        gcc libc6-dev make ninja-build meson pkg-config python3 python3-venv \
        flex bison patch xz-utils dpkg-dev cpio \
        libglib2.0-dev libpixman-1-dev zlib1g-dev libfdt-dev > /dev/null
}

# SeaBIOS and the Linux boot option ROM are packaged apart from QEMU's source.
firmware() {            # PACKAGE FILE
    [ -s "$cache/share/$2" ] && return
    mkdir -p "$cache/share"
    fetch_deb "$1" bookworm "$cache/fw"
    find "$cache/fw/root" -name "$2" -type f -exec cp {} "$cache/share/" \;
    rm -rf "$cache/fw"
    [ -s "$cache/share/$2" ] || die "no $2 in package $1"
}

build() {
    local work=$cache/work
    if up_to_date; then         # another build has just finished
        return
    fi
    echo "build.sh: building QEMU with emulated IBS in $cache: once," \
         "about 3-5 minutes on 2 cores" >&2
    firmware seabios bios-256k.bin
    firmware qemu-system-data linuxboot_dma.bin
    rm -rf "$work" && mkdir "$work"
    if [ -n "${IBSRIG_QEMU_SRC:-}" ]; then
        cp -a "$IBSRIG_QEMU_SRC" "$work/src"
    else
        fetch_source qemu '^1:7\.2' bookworm "$work"
        mv "$work"/qemu-7.2*/ "$work/src"
    fi
    local p
    for p in "${patches[@]}"; do
        patch -s -d "$work/src" -p1 < "$p" || die "${p##*/} does not apply"
    done
    mkdir -p "$work/src/build" && cd "$work/src/build"
    nice ../configure "${configure[@]}" > configure.log 2>&1 ||
        { tail -20 configure.log >&2; die "configure failed (try build.sh --deps)"; }
    nice ninja -j"${JOBS:-$(nproc)}" qemu-system-x86_64 > ninja.log 2>&1 ||
        { grep -A20 FAILED ninja.log >&2; die "compile failed"; }
    mkdir -p "$bin"
    cp ../include/qemu/qemu-plugin.h "$bin"
    install -s qemu-system-x86_64 "$qemu.new"
    mv "$qemu.new" "$qemu"
    cd "$cache" && rm -rf "$work"
    find . -maxdepth 1 -name 'bin*' -mtime +30 -exec rm -rf {} +
}

case ${1:-} in
--check) echo "$qemu"; up_to_date; exit;;
--deps) install_deps;;
'') ;;
*) sed -n '3,15s/^# \?//p' "$0" >&2; exit 125;;
esac
mkdir -p "$cache"
up_to_date || locked build build
echo "$qemu"
