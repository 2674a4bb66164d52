#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# collect.sh OUT SECONDS MIB [--no-loops]: run ibscope and perf in all ways that the report asks for, for SECONDS each,
# under a load; what they print goes to files in OUT. For sh of busybox, too: it also runs in guests.
# Needs ibscope and load in PATH; without perf what is compared with it is missing.
out=$1 s=$2 mib=$3
OP=ibs_op/cnt_ctl=1/ PERIOD=500000
mkdir -p "$out"

run() {         # NAME COMMAND...
    n=$1; shift
    echo "hwtest: $n" >&2
    "$@" > "$out/$n.out" 2> "$out/$n.err"
    echo $? > "$out/$n.rc"
}

hist() {        # NAME OPTIONS...
    n=$1; shift
    run "$n" ibscope hist --json --by op,src --core-counters -c $PERIOD -e $OP "$@" "$s" 1
}

{
    echo "kernel $(uname -r)"
    perf --version
    grep -m 5 -E '^(vendor_id|cpu family|model|stepping|microcode)' /proc/cpuinfo | tr -s '\t ' ' '
    for f in /proc/sys/kernel/nmi_watchdog /proc/sys/kernel/perf_event_paranoid \
        /proc/sys/kernel/perf_event_max_sample_rate /proc/sys/kernel/perf_cpu_time_max_percent \
        /sys/devices/system/cpu/online /sys/devices/system/cpu/smt/active; do
        [ -r $f ] && echo "${f##*/} $(cat $f)"
    done
    for d in /sys/bus/event_source/devices/ibs_* /sys/bus/event_source/devices/amd_l3; do
        [ -d "$d" ] || continue
        for f in "$d"/format/* "$d"/caps/* "$d"/cpumask; do
            [ -r "$f" ] && echo "${f#/sys/bus/event_source/devices/} $(cat "$f")"
        done
    done
} > "$out/machine" 2>/dev/null

perf=$(command -v perf)
run doctor ibscope doctor --json
run cost ibscope doctor --cost --json
if [ "$perf" ]; then    # the same while a counter is active on each CPU
    perf stat -a -e instructions sleep 60 > /dev/null 2>&1 & p=$!
    run cost-counter ibscope doctor --cost --json
    kill -INT $p; wait $p
fi

load 3600 "$mib" & load=$!
trap 'kill $load' EXIT
sleep 1
run verify ibscope doctor --verify="$s" --json ${4:+"$4"}
hist all
hist op --op load,locked
for plan in off hw,driver; do
    hist "src-$plan" --plan $plan --src dram,remote-dram
    hist "lat-$plan" --plan $plan --min-lat 300
    hist "user-$plan" --plan $plan --user
    hist "kernel-$plan" --plan $plan --kernel
done
run fetch ibscope hist --json --by fetch --core-counters -c $PERIOD -e ibs_fetch/rand_en=1/ "$s" 1
[ -e /sys/bus/event_source/devices/ibs_fetch/format/l3missonly ] &&
    run fetch-far ibscope hist --json --by fetch --core-counters -c $PERIOD -e ibs_fetch/rand_en=1,l3missonly=1/ "$s" 1
run both ibscope hist --json --by mode -c $PERIOD,$PERIOD -e $OP,ibs_fetch// "$s" 1
run command ibscope hist --json --by op -c $PERIOD -e $OP "$s" 1 -- load "$s" "$mib"
for q in '--src dram' '--min-lat 300' --user --kernel '--cgroup /'; do
    # shellcheck disable=SC2086
    echo "$q $(ibscope hist --json --explain --plan hw,sched,driver $q 2>&1)"
done > "$out/explain"

cpus=0-1; [ -e /sys/devices/system/cpu/cpu1 ] || cpus=0
run samples ibscope record -C $cpus -c $PERIOD,$PERIOD -e $OP,ibs_fetch// -o "$out/samples.data" --duration 2
ibscope dump --csv --limit 2000 "$out/samples.data" > "$out/samples-op.csv" 2> /dev/null
ibscope dump --csv --fetch --limit 2000 "$out/samples.data" > "$out/samples-fetch.csv" 2> /dev/null

if [ "$perf" ]; then
    hist some -C $cpus
    run perf perf record -q -C $cpus -e $OP -c $PERIOD --raw-samples -o "$out/perf.data" -- sleep "$s"
    run perf-report ibscope report --json --by op "$out/perf.data"
    run perf-decode perf record -q -C 0 -e $OP -c $PERIOD --raw-samples -o "$out/decode.data" -- sleep 1
    perf report -D --header -i "$out/decode.data" > "$out/decode.txt" 2> /dev/null
    # tagged, retired, rollovers: unit masks 1, 2 and 4 of PMCx1CF
    run rollovers perf stat -x, -a -e r1000001cf,r1000002cf,r1000004cf -o "$out/stat" -- \
        ibscope hist --json --by op -c $PERIOD -e $OP "$s" 1
fi
rm -f "$out"/*.data
dmesg 2> /dev/null | grep -iE 'perf:|perf_event|\bibs\b|nmi' | tail -n 30 > "$out/dmesg"
exit 0
