#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# deps.sh build|test|runtimes|mpi|lint|fuzz|valgrind|deb|package: install missing Debian packages for one of these purposes.
set -eu
export DEBIAN_FRONTEND=noninteractive

build='gcc libc6-dev make clang llvm bpftool libbpf-dev libelf-dev libdw-dev libcapstone-dev libiberty-dev liblzma-dev zlib1g-dev libzstd-dev libjansson-dev libsystemd-dev libmicrohttpd-dev libgnutls28-dev libcurl4-gnutls-dev libyaml-dev libcrypt-dev libncurses-dev pkg-config openssl'
test='libcmocka-dev python3 linux-perf procps util-linux zstd xz-utils python3-jsonschema python3-yaml systemd prometheus groff curl openssl'
# each is needed by one test, which is skipped without it; some are big
optional='chromium golang-go nodejs g++ zsh fish python3-pandas python3-matplotlib libjemalloc2'
mpi='openmpi-bin mpich hwloc-nox python3-pandas r-base-core libomp-dev g++ likwid'
runtimes='busybox-static docker.io podman containerd runc conmon lxc systemd-container uidmap slirp4netns fuse-overlayfs dbus'
fuzz='libclang-rt-14-dev'
deb='build-essential debhelper dpkg-dev lintian'
package='mmdebstrap systemd-container procps'
lint='clang-format clang-tidy cppcheck libcmocka-dev'

try=
case ${1:-} in
build) want=$build ;;
test) want=$test; try=$optional ;;
runtimes) want=$runtimes ;;
mpi) want=$mpi ;;
lint) want=$lint ;;
fuzz) want=$fuzz ;;
valgrind) want=valgrind ;;
deb) want=$deb ;;
package) want=$package ;;
*) echo 'usage: deps.sh build|test|runtimes|mpi|lint|fuzz|valgrind|deb|package' >&2; exit 2 ;;
esac

missing() {
	for p in "$@"; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || echo "$p"
	done | tr '\n' ' '
}
missing=$(missing $want)
try=$(missing $try)
[ -n "$missing$try" ] || exit 0
if ! command -v apt-get >/dev/null; then
	[ -n "$missing" ] || exit 0
	echo "deps.sh: no apt-get on this system; install the equivalents of: $missing" >&2
	exit 1
fi
if [ "$(id -u)" != 0 ]; then
	[ -n "$missing" ] || exit 0
	echo "deps.sh: missing packages; run as root: apt-get install $missing" >&2
	exit 1
fi
echo "installing $missing$try" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { apt-get install -y --no-install-recommends "$@" >"$log" 2>&1; }
# The package lists may be missing or old: then update them once.
if [ -n "$missing" ]; then
	install $missing || { apt-get update >"$log" 2>&1 && install $missing; } ||
		{ cat "$log" >&2; exit 1; }
fi
[ -z "$try" ] || install $try || { apt-get update >"$log" 2>&1 && install $try; } ||
	echo "deps.sh: cannot install $try; tests that need them are skipped" >&2
