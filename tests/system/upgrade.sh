#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# upgrade.sh COMMIT BUILD: build that release below BUILD, and test upgrades from it and downgrades to it.
set -euo pipefail
release=$1 build=$2
before=$build/before-$release
cd "$(dirname "$0")"
if ! git cat-file -e "$release^{commit}" 2>/dev/null; then
	# a clone of CI that has no history tests no upgrade
	[ "${CI:-}" = true ] || { echo "skip upgrade: this tree has no history with $release"; exit 0; }
	echo "upgrade: this tree has no history with $release: fetch all of it (git fetch --unshallow), or name another commit with RELEASE=" >&2
	exit 1
fi
if [ ! -x "$before/build/ibscope" ]; then
	mkdir -p "$before"
	git -C ../.. archive "$release" | tar -x -C "$before"
	make --no-print-directory -C "$before" -j"$(nproc)" O=build CC="${CC:-cc}" all >"$before/log" 2>&1 || { cat "$before/log"; exit 1; }
fi
IBSCOPE_BUILD=$build IBSCOPE_BEFORE=$before/build python3 upgrade.py
