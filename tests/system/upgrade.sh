#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# upgrade.sh COMMIT BUILD: build that release below BUILD, and test upgrades from it and downgrades to it.
set -euo pipefail
release=$1 build=$2
before=$build/before-$release
cd "$(dirname "$0")"
if [ ! -x "$before/build/ibscope" ]; then
	mkdir -p "$before"
	git -C ../.. archive "$release" | tar -x -C "$before"
	make --no-print-directory -C "$before" -j"$(nproc)" O=build CC="${CC:-cc}" all >"$before/log" 2>&1 || { cat "$before/log"; exit 1; }
fi
IBSCOPE_BUILD=$build IBSCOPE_BEFORE=$before/build python3 upgrade.py
