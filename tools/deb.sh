#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# deb.sh DIR VERSION: build the Debian package in DIR from a copy of the tree, and run lintian on it.
set -eu
[ $# = 2 ] || { echo 'usage: deb.sh DIR VERSION' >&2; exit 2; }
cd "$(dirname "$0")/.."
case $(head -n 1 tools/debian/changelog) in
*"($2)"*) ;;
*) echo "deb.sh: tools/debian/changelog does not begin with version $2" >&2; exit 1 ;;
esac
rm -rf "$1"
tree=$1/ibscope-$2
mkdir -p "$tree"
cp -r Makefile LICENSE README.md bpf include src tools vmlinux "$tree"
cp -r tools/debian "$tree/debian"
log=$1/build.log
(cd "$tree" && dpkg-buildpackage --build=binary --no-sign --jobs=2) >"$log" 2>&1 ||
	{ tail -n 40 "$log" >&2; exit 1; }
rm -rf "$tree"
# The contact is the issue tracker of the repository, see copyright; dpkg wants a maintainer, but no address.
lintian --suppress-tags malformed-contact,bogus-mail-host-in-debian-changelog --fail-on error "$1"/*.changes
ls "$1"/*.deb
