#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# install.sh [--uninstall] BUILD DESTDIR PREFIX: the work of `make install` and `make uninstall`. With prefixes
# /usr and /usr/local, systemd, man and shells find the files.
set -eu
uninstall=
[ "${1:-}" != --uninstall ] || { uninstall=yes; shift; }
[ $# = 3 ] || { echo 'usage: install.sh [--uninstall] BUILD DESTDIR PREFIX' >&2; exit 2; }
build=$1 dest=$2 prefix=$3
to=$dest$prefix
cd "$(dirname "$0")/.."

# What an installation would have put there is removed: files, and directories that are empty then. Changed
# configuration stays.
if [ -n "$uninstall" ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	tools/install.sh "$build" "$tmp" "$prefix"
	if [ -z "$dest" ] && [ -d /run/systemd/system ]; then
		systemctl disable --now ibscope.service ibscope-exporter.service 2>/dev/null || true
	fi
	[ -n "$dest" ] || ! [ -x "$to/bin/ibscope" ] || "$to/bin/ibscope" ctl unpin 2>/dev/null || true
	(cd "$tmp" && find . ! -type d) | while read -r file; do
		case $file in
		./etc/ibscope/* | ./etc/default/*)
			[ ! -e "$dest/$file" ] || cmp -s "$tmp/$file" "$dest/$file" || { echo "$dest${file#.}: changed, so it stays"; continue; } ;;
		esac
		rm -f "$dest/$file"
	done
	(cd "$tmp" && find . -depth -mindepth 1 -type d) | while read -r dir; do
		rmdir "$dest/$dir" 2>/dev/null || true
	done
	exit 0
fi

for program in ibscope ibscope-exporter; do
	[ -e "$build/$program" ] || continue
	install -D -m 755 -t "$to/bin" "$build/$program"
	install -d "$to/lib/systemd/system"
	sed "s|=/usr/bin/|=$prefix/bin/|" "tools/systemd/$program.service" \
		>"$to/lib/systemd/system/$program.service"
	chmod 644 "$to/lib/systemd/system/$program.service"
done
install -D -m 644 -t "$to/include/ibscope" include/ibscope/region.h
for library in omp markers alloc; do
	[ ! -e "$build/libibscope-$library.so" ] ||
		install -D -m 644 -t "$to/lib/ibscope" "$build/libibscope-$library.so"
done
for section in 1 5 7; do
	install -D -m 644 -t "$to/share/man/man$section" tools/man/*."$section"
done
ln -sf ibscope-serve.1 "$to/share/man/man1/ibscope-ctl.1"
install -D -m 644 tools/completion/ibscope.bash "$to/share/bash-completion/completions/ibscope"
ln -sf ibscope "$to/share/bash-completion/completions/ibscope-exporter"
# zsh and fish look for packages' files elsewhere than for an administrator's
case $prefix in
/usr) zsh=$to/share/zsh/vendor-completions fish=$to/share/fish/vendor_completions.d ;;
*) zsh=$to/share/zsh/site-functions fish=$dest/etc/fish/completions ;;
esac
install -D -m 644 tools/completion/_ibscope "$zsh/_ibscope"
install -D -m 644 tools/completion/ibscope.fish "$fish/ibscope.fish"
ln -sf ibscope.fish "$fish/ibscope-exporter.fish"

# keep configuration files that the administrator changed
install -d "$dest/etc/ibscope" "$dest/etc/default"
[ -e "$dest/etc/ibscope/ibscope.conf" ] ||
	install -m 644 tools/systemd/ibscope.conf "$dest/etc/ibscope/ibscope.conf"
[ -e "$dest/etc/default/ibscope-exporter" ] ||
	install -m 644 tools/systemd/ibscope-exporter.default "$dest/etc/default/ibscope-exporter"

install -D -m 644 -t "$to/share/ibscope/systemd" tools/systemd/sys-admin.conf tools/systemd/nested-names.conf tools/systemd/shared-machine.conf
install -D -m 644 tools/grafana/ibscope.json "$to/share/ibscope/grafana/ibscope.json"
install -D -m 644 -t "$to/share/ibscope/schemas" tools/schemas/*.json
install -D -m 644 -t "$to/share/doc/ibscope/examples" tools/examples/*.c
install -D -m 644 -t "$to/share/doc/ibscope/examples/notebook" tools/examples/notebook/*.py
install -D -m 644 -t "$to/share/ibscope/prometheus" tools/prometheus/*.yml
install -D -m 644 -t "$to/share/ibscope/prometheus" tools/prometheus/FLEET.md
install -D -m 644 -t "$to/share/ibscope/kubernetes" tools/kubernetes/*.yaml
# install copies the files that the links point to
install -D -m 644 -t "$to/share/ibscope/kubernetes/chart" tools/kubernetes/chart/*.yaml
install -D -m 644 -t "$to/share/ibscope/kubernetes/chart/templates" tools/kubernetes/chart/templates/*
