#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# package.sh DIR ROOT: install the Debian package of DIR in the clean root ROOT, which is made if there is none, start its units under systemd, scrape, upgrade,
# remove and purge it, and list what is left. Samples are SIMULATED.
#
# package.sh --inside: what runs in that root.
set -uo pipefail
conf=/etc/systemd/system/ibscope.service.d
passed=0 failed=0

# check TEXT COMMAND...: count whether the command succeeds
check() {
	local text=$1
	shift
	if "$@" >/tmp/said 2>&1; then
		passed=$((passed + 1))
		echo "ok   $text"
	else
		failed=$((failed + 1))
		echo "FAIL $text: $(head -c 2000 /tmp/said)"
	fi
}

soon() {	# COMMAND...: it succeeds within a minute
	for _ in $(seq 120); do
		"$@" && return
		sleep 0.5
	done
	systemctl status ibscope ibscope-exporter
	journalctl -b -u ibscope -u ibscope-exporter 2>/dev/null | tail -n 20
	return 1
}

scrape() {	# NAME: the value of a metric without labels
	curl -s http://127.0.0.1:9950/metrics | sed -n "s/^$1 //p"
}

more() {	# NUMBER: more samples than that were seen
	local now
	now=$(scrape ibscope_samples_seen_total)
	[ -n "$now" ] && [ "${now%.*}" -gt "$1" ]
}

equal() {	# A B
	[ "$1" = "$2" ] || { echo "$1 is not $2"; false; }
}

nothing_runs() {
	! pgrep -x 'ibscope|ibscope-exporter' && [ -z "$(find /sys/fs/bpf /run -name '*ibscope*' -not -path '/run/ibscope-test*')" ] ||
		{ pgrep -a ibscope; find /sys/fs/bpf /run -name '*ibscope*'; false; }
}

files() {
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/log -o -path /package \
		-o -path /var/lib/dpkg -o -path /var/cache -o -path /var/lib/systemd/timers -o -path "$conf" \) -prune -o -print | sort
}

left() {	# nothing is there that was not
	files >/tmp/after
	comm -13 /tmp/before /tmp/after | tee /tmp/left
	[ ! -s /tmp/left ]
}

inside() {
	local seen start
	files >/tmp/before
	check 'install' dpkg -i /package/ibscope_*.deb
	check 'without IBS the collector does not start' equal "$(systemctl is-active ibscope)" inactive
	mkdir -p $conf
	printf '[Unit]\nConditionPathExists=\n' >$conf/sim.conf
	mkdir -p /etc/systemd/system/ibscope-exporter.service.d
	cp $conf/sim.conf /etc/systemd/system/ibscope-exporter.service.d/
	printf '\nsource = sim\n' >>/etc/ibscope/ibscope.conf
	systemctl daemon-reload
	check 'start' systemctl start ibscope ibscope-exporter
	check 'units are up' soon systemctl is-active ibscope ibscope-exporter
	check 'samples are scraped' soon more 100
	seen=$(scrape ibscope_samples_seen_total) start=$(scrape ibscope_counters_start_time_seconds)
	check 'upgrade' env DEBIAN_FRONTEND=noninteractive dpkg -i --force-confold /package/upgrade/ibscope_*.deb
	check 'units are up again' soon systemctl is-active ibscope ibscope-exporter
	check 'counters go on' soon more "${seen%.*}"
	check 'since the same time' equal "$(scrape ibscope_counters_start_time_seconds)" "$start"
	check 'stop' systemctl stop ibscope-exporter ibscope
	check 'nothing samples on' equal "$(find /sys/fs/bpf/ibscope/links -type f 2>/dev/null)" ''
	check 'start again' systemctl start ibscope ibscope-exporter
	check 'remove while it runs' dpkg -r ibscope
	check 'no process, pin or socket is left' soon nothing_runs
	check 'the changed configuration is kept' test -e /etc/ibscope/ibscope.conf
	check 'purge' dpkg -P ibscope
	rm -r /etc/systemd/system/ibscope-exporter.service.d
	check 'no file is left' left
	printf '%d passed, %d failed\n' $passed $failed
}

if [ "$1" = --inside ]; then
	inside >/package/result 2>&1
	exit
fi

dir=$(realpath "$1")
root=$(realpath -m "$2")
me=$(realpath "$0")
dpkg-deb -I "$dir"/ibscope_*.deb >/dev/null || exit
depends=$(dpkg-deb -f "$dir"/ibscope_*.deb Depends Pre-Depends | sed 's/^[A-Za-z-]*: //' | tr ',' '\n' | sed 's/|.*//; s/(.*)//' | tr -d ' ' | sort -u)
packages=$(echo systemd-sysv curl procps $depends)
if [ ! -e "$root.done" ]; then
	rm -rf "$root"
	# Packages come by the apt of this machine, as it is configured here: mirrors, proxies, pins.
	mkdir -p "$root.debs/partial"
	# shellcheck disable=SC2086 # several packages
	apt-get -qq -y -o Dir::State::status=/dev/null -o Dir::Cache::archives="$root.debs" -o APT::Sandbox::User=root --no-install-recommends \
		--download-only install '?essential' apt $packages || exit
	(cd "$root.debs" && dpkg-scanpackages --multiversion . >Packages) || exit
	mmdebstrap --quiet --variant=minbase --aptopt='APT::Sandbox::User "root"' --include="${packages// /,}" '' "$root" \
		"deb [trusted=yes] copy:$root.debs ./" || exit
	rm -r "$root.debs"
	touch "$root.done"
fi
work=$(mktemp -d)
# what was made there ends with the run
mkdir "$work/upper" "$work/work" "$work/root" "$work/package" "$work/package/upgrade"
cp "$me" "$dir"/ibscope_*.deb "$work/package"
dpkg-deb -R "$dir"/ibscope_*.deb "$work/unpacked"
sed -i 's/^Version: .*/&+1/' "$work/unpacked/DEBIAN/control"
dpkg-deb -b "$work/unpacked" "$work/package/upgrade/ibscope_next.deb" >/dev/null
export root work
unshare --mount bash -c '
	cgroup=/sys/fs/cgroup/unified
	[ -d $cgroup ] || cgroup=/sys/fs/cgroup
	mkdir -p $cgroup/ibscope-package && echo $$ >$cgroup/ibscope-package/cgroup.procs
	mount -t tmpfs tmpfs "$work/root" && mkdir "$work/root/upper" "$work/root/work" "$work/root/merged" &&
		mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/root/upper,workdir=$work/root/work" "$work/root/merged" || exit
	cat >"$work/root/merged/etc/systemd/system/package.service" <<-END
		[Service]
		Type=oneshot
		ExecStart=/bin/bash /package/package.sh --inside
		ExecStopPost=/bin/systemctl --no-block poweroff
	END
	ln -s ../package.service "$work/root/merged/etc/systemd/system/multi-user.target.wants/"
	mount -t bpf -o mode=0755 bpf /sys/fs/bpf
	export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
	timeout 900 systemd-nspawn --quiet --directory="$work/root/merged" --boot --register=no --keep-unit --capability=all \
		--system-call-filter="bpf perf_event_open @clock" --bind="$work/package:/package" --bind=/sys/fs/bpf --machine=ibscope-package \
		</dev/null >"$work/console" 2>&1'
[ -s "$work/package/result" ] || cat "$work/console"
cat "$work/package/result"
cgroup=$(find /sys/fs/cgroup -maxdepth 2 -name ibscope-package | head -n 1)
[ -z "$cgroup" ] || find "$cgroup" -depth -type d -exec rmdir {} \;
tail -n 1 "$work/package/result" | grep -q ' 0 failed$'
rc=$?
rm -rf "$work"
exit $rc
