#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# symbols.sh KERNEL: print the file that holds /proc/kallsyms of a guest's kernel, gzipped. It is made by
# booting the kernel once; guests boot with nokaslr, so that addresses are the same in each boot.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
[ $# = 1 ] || die "usage: symbols.sh 5.10|6.1|6.12|7.2"
"$here/run.sh" --kernel "$1" --fetch-only
symbols=$cache/kernel/kallsyms-$1

read_symbols() {
    [ ! "$symbols" -nt "$cache/kernel/vmlinuz-$1" ] || return 0
    "$here/run.sh" --kernel "$1" --gen none --smp 1 --icount --timeout 900 -- \
        sh -c 'gzip -1c /proc/kallsyms' > "$symbols.new" || die "cannot read the symbols of kernel $1"
    mv "$symbols.new" "$symbols"
}
[ "$symbols" -nt "$cache/kernel/vmlinuz-$1" ] || locked "symbols-$1" read_symbols "$1"
echo "$symbols"
