#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# selftest.sh [KERNEL:GEN...]: perf, a BPF program and the guest's tasks against
# the ground truth.  Needs perf, clang, cc, make and libbpf-dev on the host.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
w=$(mktemp -d "${TMPDIR:-/tmp}/ibsself.XXXXXX")
trap 'rm -rf "$w"' EXIT
trap 'exit 130' INT TERM HUP
make -s -C "$here/probe" O="$w"
"$here/mkoverlay.sh" -o "$w/ov" perf:/usr/bin/perf \
    "$w/ibscount:/usr/bin/ibscount" "$w/spin:/usr/bin/spin" \
    "$w/flags:/usr/bin/flags"
cp "$w/ibscount.bpf.o" "$w/ov/"
cat > "$w/ov/perf-guest" <<'G'
perf record -q -e ibs_op// -c 100000 -a --raw-samples -o /tmp/p.data -- \
    busybox dd if=/dev/zero of=/dev/null bs=64k count=4000 > /dev/null 2>&1 &&
perf report -D -i /tmp/p.data 2> /dev/null
G
# vCPU 0 is mostly idle, or in dd; on vCPU 1 a shell loop and two threads
cat > "$w/ov/bpf-guest" <<'G'
cd /sys/fs/cgroup
mkdir loop
sh -c 'echo $$ > loop/cgroup.procs; exec taskset 2 busybox sh -c "while :; do :; done"' &
echo "loop tids=$! tgid=$! cgroup=$(stat -c %i loop)"
spin /sys/fs/cgroup/spin 1 &
(sleep 2; exec timeout 1 taskset 1 dd if=/dev/zero of=/dev/null bs=64k) 2> /dev/null &
grep -E ' __cpuidle_text_(start|end)$' /proc/kallsyms
sleep 0.3
ibscount /ibscount.bpf.o 3
G
[ $# -gt 0 ] || set -- {5.10,6.1,6.12,7.2}:{zen3,zen4,zen5}
fail=0
failed() { echo "FAIL $*"; fail=1; }
run() {                 # GUEST-SCRIPT OUTPUT RUN-OPTION...
    local script=$1 out=$2
    shift 2
    "$here/run.sh" --kernel "$k" --gen "$g" --overlay "$w/ov" --log "$w/log" \
        --console "$w/con" --timeout 200 "$@" -- sh "/$script" > "$out" ||
        failed "$script in the guest"
    grep -aE 'WARNING:|BUG:|Oops|unknown reason|Uhhuh|stall' "$w/con" &&
        failed "the kernel complained" || true
}
totals='s/.*\(samples=[0-9]*\).*\(loads=[0-9]*\).*\(xor3=[0-9a-f]*\).*\(sumlat=[0-9]*\).*/\1 \2 \3 \4/p'
for kg in "$@"; do
    k=${kg%:*} g=${kg#*:}
    echo "== kernel $k gen $g: perf record -e ibs_op// -c 100000 -a"
    run perf-guest "$w/dump"
    "$here/check-perf.py" "$w/log" "$w/dump" || failed "perf"
    echo "== kernel $k gen $g: BPF program on ibs_op, 3 s; tasks"
    # polling: a halted vCPU takes no samples
    run bpf-guest "$w/bpf" --append idle=poll
    grep samples= "$w/bpf" || true
    "$here/check-log.py" "$w/log" | tee "$w/truth"
    [ -n "$(sed -n "$totals" "$w/bpf")" ] &&
        [ "$(sed -n "$totals" "$w/bpf")" = "$(sed -n "$totals" "$w/truth")" ] ||
        failed "BPF totals differ from the log"
    "$here/check-task.py" "$w/log" "$w/bpf" || failed "tasks"
    "$here/run.sh" --kernel "$k" --gen "$g" --overlay "$w/ov" --log "$w/log" \
        --timeout 200 -- flags || failed "flags"
done
[ $fail = 0 ] && echo "all passed"
exit $fail
