#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# deps.sh build|test|lint|fuzz: install the Debian packages that are missing to build, test or lint.
set -eu
export DEBIAN_FRONTEND=noninteractive

build='gcc libc6-dev make clang llvm bpftool libbpf-dev libelf-dev libdw-dev zlib1g-dev libzstd-dev libjansson-dev libsystemd-dev libmicrohttpd-dev libyaml-dev libcrypt-dev pkg-config'
test='libcmocka-dev python3 linux-perf procps util-linux'
fuzz='libclang-rt-14-dev'
lint='clang-format cppcheck libcmocka-dev'

case ${1:-} in
build) want=$build ;;
test) want=$test ;;
lint) want=$lint ;;
fuzz) want=$fuzz ;;
*) echo 'usage: deps.sh build|test|lint|fuzz' >&2; exit 2 ;;
esac

missing=
for p in $want; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "deps.sh: no apt-get here; install the like of:$missing" >&2
	exit 1
fi
if [ "$(id -u)" != 0 ]; then
	echo "deps.sh: missing:$missing; run as root: apt-get install$missing" >&2
	exit 1
fi
echo "installing$missing" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt-get install -y --no-install-recommends $missing >"$log" 2>&1; }
# The lists may be absent or old: then update them, once.
install || { apt-get update >"$log" 2>&1 && install; } || { cat "$log" >&2; exit 1; }
