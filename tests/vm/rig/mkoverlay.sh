#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# mkoverlay.sh [-o DIR] BIN...
# Copy dynamically linked binaries and the libraries ldd finds to a root tree
# below DIR (without -o, a tar of it goes to stdout).  BIN can be SRC:DEST to
# choose the path in the guest (default: SRC's own path, or /usr/bin/NAME for a
# relative one); a SRC without a slash is looked up in PATH.
set -euo pipefail
out=
[ "${1:-}" = -o ] && { out=$2; shift 2; }
[ $# -gt 0 ] || { sed -n '3,7s/^# \?//p' "$0" >&2; exit 1; }
dir=${out:-$(mktemp -d)}
[ -n "$out" ] || trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir"

put() {         # SRC DEST
    mkdir -p "$dir$(dirname "$2")"
    cp -L --preserve=mode,timestamps "$1" "$dir$2"
}

for a in "$@"; do
    src=${a%%:*}
    case $a in *:*) dest=${a#*:};; *) dest=;; esac
    case $src in */*) ;; *) src=$(command -v "$src");; esac
    if [ -z "$dest" ]; then
        case $src in /*) dest=$src;; *) dest=/usr/bin/$(basename "$src");; esac
    fi
    put "$src" "$dest"
    { ldd "$src" 2>/dev/null || true; } | awk '
        $2 == "=>" && $3 ~ /^\// { print $3 }
        $1 ~ /^\// { print $1 }' | sort -u | while read -r l; do
        put "$l" "$l"
    done
done
[ -n "$out" ] || tar -c -C "$dir" .
