#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# perf-tree.sh KERNEL: make sure the cache has the perf of a guest's kernel (5.10, 6.1, 6.12, 7.2:
# run.sh), and print the root tree, for run.sh --overlay, in which /usr/bin/perf is that perf, with
# libraries of its own below /opt/perf.
set -eEuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
trap '[ $? = 125 ] && exit 125; die "failed at line $LINENO: $BASH_COMMAND"' ERR

case ${1:-} in
5.10) suite=bullseye package=linux-perf-5.10;;
6.1)  suite=bookworm package=linux-perf;;
6.12) suite=trixie package=linux-perf;;
7.2)  suite=sid package=linux-perf;;
*) sed -n '3,5s/^# \?//p' "$0" >&2; exit 125;;
esac
tree=$cache/perf/$1

# Packages of one suite alone, whatever is installed here.
get_tree() {
    local opts work=$tree.tmp deb lib libs ld perf
    [ ! -d "$tree" ] || return 0
    opts=$(private_apt "$suite" deb) || die "no packages of $suite"
    rm -rf "$work"
    mkdir -p "$work/root" "$work/archives/partial" "$work/tree/opt/perf" "$work/tree/usr/bin"
    : > "$work/status"
    echo "fetching $package of $suite" >&2
    apt-get $opts -o "Dir::State::status=$work/status" -o "Dir::Cache::archives=$work/archives" \
        -o APT::Install-Recommends=0 -o Debug::NoLocking=1 -y --download-only install "$package" \
        > "$work/apt.log" 2>&1 || apt_failed "$work" "$package"
    for deb in "$work"/archives/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/root" --keep-directory-symlink
    done
    # suites before the merged /usr have libraries in both
    perf=$(cd "$work/root" && find usr/bin usr/lib -name 'perf*' -type f -perm -1 -size +1M | head -1)
    [ -n "$perf" ] || die "$package has no perf"
    cp "$work/root/$perf" "$work/tree/opt/perf/perf"
    ld=$(find "$work/root" -name 'ld-linux-x86-64.so.2' -print -quit)
    libs=$(find "$work/root" -type d -name x86_64-linux-gnu -printf '%p:')
    cp -L "$ld" "$work/tree/opt/perf/"
    "$ld" --inhibit-cache --library-path "$libs" --list "$work/root/$perf" > "$work/ldd" ||
        die "$(grep -m 1 'not found' "$work/ldd")"
    awk '$2 == "=>" { print $3 }' "$work/ldd" | sort -u | while read -r lib; do
        [ "$lib" = "${lib#"$work/"}" ] || cp -L "$lib" "$work/tree/opt/perf/"
    done
    printf '#!/bin/sh\nexec /opt/perf/ld-linux-x86-64.so.2 --library-path /opt/perf /opt/perf/perf "$@"\n' \
        > "$work/tree/usr/bin/perf"
    chmod +x "$work/tree/usr/bin/perf" "$work/tree/opt/perf/"ld-linux*
    mv "$work/tree" "$tree"
    rm -rf "$work"
}
mkdir -p "$cache/perf"
[ -d "$tree" ] || locked "perf-$1" get_tree
echo "$tree"
