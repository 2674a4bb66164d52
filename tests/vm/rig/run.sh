#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Boot a Debian kernel on the emulated-IBS machine and run one command in it.
# See README.md; "run.sh -h" for the options.
set -eEuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
# die has spoken already when the status is 125
trap '[ $? = 125 ] && exit 125; die "failed at line $LINENO: $BASH_COMMAND"' ERR

usage() {
    cat <<U
usage: run.sh [options] -- COMMAND [ARG...]
  --kernel 5.10|6.1|6.12|7.2  Debian kernel to boot (default 6.1)
  --smp N                     vCPUs (default 2)
  --gen zen2|zen3|zen4|zen5|zen6|none   IBS generation (default zen4)
  --caps N                    override CPUID Fn8000_001B EAX
  --pmu                       core performance counters, which count IBS too
  --overlay DIR               root tree to add to the guest (repeatable)
  --timeout S                 wall-clock limit (default 300)
  --log FILE                  ground truth: one line per delivered sample
  --console FILE              keep the kernel console
  --mem MIB                   guest memory (default 2048)
  --nodes N                   NUMA nodes with equal shares of memory and vCPUs (default: none);
                              shares of 128 MiB or a multiple
  --append "ARGS"             more kernel arguments
  --icount                    guest time = guest instructions (1 ns each, or as many as
                              2 to the power of \$IBSRIG_ICOUNT_SHIFT), one host
                              thread: costs repeat almost exactly
  --plugin FILE[,ARG=VALUE..] a plugin for the QEMU of build.sh --plugins
  --stock-throttle            leave kernel.perf_cpu_time_max_percent alone
  --fetch-only                only make sure the kernel is in the cache
Exit status: the command's; 124 timeout; 125 the rig failed.
U
}

kernel=6.1 smp=2 gen=zen4 caps= overlays=() limit=300 log= console= mem=2048 numa=()
nodes=0 append= stock=0 pmu= fetch_only=0 plugin=() accel=(-accel tcg,thread=multi)
# with ERMS kernels clear and copy pages byte by byte, which the emulator does one by one
strings=,erms=off,fsrm=off tsc=tsc=reliable
while [ $# -gt 0 ]; do
    case $1 in
    --kernel|--smp|--gen|--caps|--overlay|--timeout|--log|--console|--mem|--nodes|--append|--plugin)
        [ $# -ge 2 ] || die "$1 needs a value";;
    esac
    case $1 in
    --kernel) kernel=$2; shift;;
    --smp) smp=$2; shift;;
    --gen) gen=$2; shift;;
    --caps) caps=$2; shift;;
    --overlay) overlays+=("$2"); shift;;
    --timeout) limit=$2; shift;;
    --log) log=$2; shift;;
    --console) console=$2; shift;;
    --mem) mem=$2; shift;;
    --nodes) nodes=$2; shift;;
    --append) append=$2; shift;;
    --icount) accel=(-accel tcg,thread=single -icount shift="${IBSRIG_ICOUNT_SHIFT:-0}",sleep=off)
        strings= tsc=;; # instructions are counted as processors with it have them
    --plugin) plugin=(-plugin "$2"); shift;;
    --stock-throttle) stock=1;;
    --pmu) pmu=,ibs-pmu=on;;
    --fetch-only) fetch_only=1;;
    -h|--help) usage; exit 0;;
    --) shift; break;;
    *) usage >&2; exit 125;;
    esac
    shift
done
[ $# -gt 0 ] || [ $fetch_only = 1 ] || { usage >&2; exit 125; }
command -v cpio > /dev/null || die "no cpio; run build.sh --deps"

case $kernel in
5.10) re='linux-image-5\.10\.[0-9]+-[0-9]+-amd64-unsigned' suite=bullseye;;
6.1)  re='linux-image-6\.1\.[0-9]+-[0-9]+-amd64' suite=bookworm;;
6.12) re='linux-image-6\.12\.[0-9]+\+deb[0-9]+-amd64(-unsigned)?' suite=trixie;;
7.2)  re='linux-binary-7\.2\.[0-9]+\+deb[0-9]+-amd64' suite=sid;;
*) die "unknown kernel $kernel";;
esac
cpu=max,la57=off,monitor=off$strings,vendor=AuthenticAMD
case $gen in
zen2) cpu+=,family=23,model=49,stepping=0,ibs-gen=zen2;;
zen3) cpu+=,family=25,model=1,stepping=1,ibs-gen=zen3;;
zen4) cpu+=,family=25,model=17,stepping=1,ibs-gen=zen4;;
zen5) cpu+=,family=26,model=2,stepping=1,ibs-gen=zen5;;
zen6) cpu+=,family=26,model=80,stepping=0,ibs-gen=zen6;;
none) cpu+=,family=25,model=17,stepping=1;;
*) die "unknown generation $gen";;
esac
[ -z "$caps" ] || cpu+=",ibs-caps=$caps"
cpu+=$pmu

# --- kernel and busybox, fetched once
mkdir -p "$cache/kernel"
bz=$cache/kernel/vmlinuz-$kernel
bb=$cache/busybox

get_file() {            # TARGET REGEX SUITE FIND-PATTERN
    local t=$1.tmp
    [ ! -s "$1" ] || return 0
    fetch_deb "$2" "$3" "$t"
    cp "$(find "$t/root" -path "$t/root/$4" -type f -print -quit)" "$1.new"
    mv "$1.new" "$1"
    rm -rf "$t"
}
[ -s "$bz" ] || locked "kernel-$kernel" get_file "$bz" "$re" "$suite" '*/vmlinuz*'
[ -s "$bb" ] || locked busybox get_file "$bb" busybox-static bookworm '*bin/busybox'
[ $fetch_only = 0 ] || exit 0
qemu=$("$here/build.sh" ${plugin:+--plugins} --check) ||
    die "QEMU is missing or not built from these patches; run build.sh ${plugin:+--plugins}"

# --- from here on there is something to clean up
tmp=$(mktemp -d "${TMPDIR:-/tmp}/ibsrig.XXXXXX")
vm= out=
cleanup() {
    trap - ERR
    set +e
    [ -z "$vm" ] || kill $vm $out 2> /dev/null
    wait
    rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# --- where this kernel keeps the current task, for the log; found once
task=$cache/kernel/task-$kernel
find_task() {
    [ ! "$task" -nt "$bz" ] || return 0
    "$here/run.sh" --kernel "$kernel" --gen none --timeout 120 -- sh -c '
        grep -wE "current_task|pcpu_hot" /proc/kallsyms
        echo
        gzip -1c /sys/kernel/btf/vmlinux' > "$tmp/task" &&
    python3 "$here/task-offsets.py" < "$tmp/task" > "$task.new" ||
        die "cannot find the task offsets of kernel $kernel"
    mv "$task.new" "$task"
}
unset QEMU_IBS_LOG
if [ -n "$log" ]; then
    : > "$log" || die "cannot write $log"
    export QEMU_IBS_LOG="$log"
    if [ -z "${QEMU_IBS_TASK+set}" ]; then
        [ "$task" -nt "$bz" ] || locked "task-$kernel" find_task
        QEMU_IBS_TASK=$(cat "$task")
    fi
    export QEMU_IBS_TASK
fi

# --- initramfs: ours, then the overlays (later archives win)
root=$tmp/root
mkdir -p "$root"/{ibsrig/bin,proc,sys,dev,tmp,run,root,etc}
cp "$bb" "$root/ibsrig/busybox"
chmod +x "$root/ibsrig/busybox"
cp "$here/guest-init" "$root/init"
chmod +x "$root/init"
echo "stock=$stock" > "$root/ibsrig/conf"
{
    echo 'cd /root'
    printf 'exec'
    for a in "$@"; do printf " '%s'" "${a//\'/\'\\\'\'}"; done
    echo
} > "$root/ibsrig/cmd"
pack() { (cd "$1" && find . -print0 | LC_ALL=C sort -z |
          cpio --null -o -H newc --quiet -R 0:0) >> "$tmp/initrd"; }
pack "$root"
for o in "${overlays[@]}"; do
    [ -d "$o" ] || die "no overlay directory $o"
    pack "$o"
done

# --- machine.  It ends with this script, however that ends.  QEMU makes its
# stdout non-blocking, so it gets a pipe instead of the caller's.
# Each node is a socket: 5.10 warns where the CPUs of one L3 are of different nodes.
cpus=$smp
[ "$nodes" = 0 ] || cpus+=,sockets=$nodes
for ((i = 0; i < nodes; i++)); do
    numa+=(-object "memory-backend-ram,id=node$i,size=$((mem / nodes))M"
           -numa "node,memdev=node$i,cpus=$((i * smp / nodes))-$(((i + 1) * smp / nodes - 1))")
    for ((j = 0; j < i; j++)); do
        numa+=(-numa "dist,src=$i,dst=$j,val=$((10 + 11 * (i - j)))")
    done
done
con=${console:-$tmp/console}
: > "$con" || die "cannot write $con"
mkfifo "$tmp/out"
cat < "$tmp/out" & out=$!
setpriv --pdeathsig TERM timeout -k 5 "$limit" "$qemu" "${plugin[@]}" \
    -L "$cache/share" -M pc "${accel[@]}" -cpu "$cpu" -smp "$cpus" -m "$mem" "${numa[@]}" \
    -global apic-common.vapic=off \
    -nodefaults -no-user-config -display none -vga none -no-reboot \
    -serial "file:$con" -chardev stdio,id=out,signal=off -serial chardev:out \
    -kernel "$bz" -initrd "$tmp/initrd" \
    -append "console=ttyS0 nokaslr mitigations=off $tsc panic=-1 $append" \
    < /dev/null > "$tmp/out" & vm=$!
rc=0
wait $vm || rc=$?
wait $out || true
vm=
st=$(sed -n 's/.*@@ibsrig-exit \([0-9]*\)@@.*/\1/p' "$con" | tail -1)
if [ -n "$st" ]; then
    exit "$st"
fi
# 137: it took SIGKILL, after the limit or from outside
if [ $rc = 124 ] || { [ $rc = 137 ] && [ $SECONDS -ge "${limit%%[!0-9]*}" ]; }; then
    echo "run.sh: timeout after ${limit}s; console:" >&2
    tail -5 "$con" >&2
    exit 124
fi
echo "run.sh: the machine stopped without an exit status (qemu: $rc); console:" >&2
tail -25 "$con" >&2
exit 125
