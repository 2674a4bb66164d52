#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Print the path of a Prometheus that has native histograms, which Debian 12's has not: that of Debian's
# unstable suite, unpacked beside the emulator of tests/vm/rig.
#
#   prometheus3.sh --find    exit with 1 if it was not fetched before
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../vm/rig/lib.sh"
program=$cache/prometheus3/root/usr/bin/prometheus

fetch() {
	rm -rf "$cache/prometheus3" && mkdir -p "$cache/prometheus3"
	opts=$(private_apt sid deb) && get_deb prometheus "$cache/prometheus3" ||
		apt_failed "$cache/prometheus3" 'prometheus (suite sid)'
}

if [ ! -x "$program" ]; then
	[ "${1:-}" != --find ] || exit 1
	mkdir -p "$cache"
	locked prometheus3 fetch
fi
echo "$program"
