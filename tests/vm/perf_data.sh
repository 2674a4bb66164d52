#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# In a guest of rig/run.sh with perf and work: record perf.data of every shape, as a tar on stdout.
#   rig/mkoverlay.sh -o OV perf:/usr/bin/perf WORK:/usr/bin/work perf_data.sh:/perf_data.sh
#   rig/run.sh --kernel 6.12 --gen zen4 --overlay OV -- sh /perf_data.sh > 6.12-zen4.tar
# What a kernel cannot do leaves an empty file. tests/data/perf has some of them.
O=/tmp/out cg=/sys/fs/cgroup
mkdir -p $O $cg/a/b $cg/c
exec 3>&1 > $O/script.log 2>&1
set -x
# without a controller perf's own has no part of the tree
echo +pids > $cg/cgroup.subtree_control
echo +pids > $cg/a/cgroup.subtree_control
work $cg/a/b 0 &
work $cg/c 1 &
sleep 0.5
busy='i=0; while [ $i -lt 8 ]; do i=$((i+1)); /ibsrig/bin/true; sleep 0.01; done'
all='-c 10000000 -a --raw-samples'

rec() {     # NAME OPTIONS...
    n=$1
    shift
    timeout -s KILL 60 perf record -q -o $O/$n.data "$@" -- sh -c "$busy"
}
rec op -e ibs_op// $all
rec opfetch -e ibs_op/cnt_ctl=1/ -e ibs_fetch/rand_en=1/ $all
rec z -z -e ibs_op// -e ibs_fetch// $all
timeout -s KILL 60 perf record -q -o - -e ibs_op// -e ibs_fetch// $all -- sh -c "$busy" > $O/pipe.data
timeout -s KILL 60 perf record -q -o - -z -e ibs_op// $all -- sh -c "$busy" > $O/pipez.data
rec cgroups --all-cgroups -e ibs_op// $all
rec graph -g -e ibs_op// $all
rec mixed -e ibs_op/name=mem,cnt_ctl=1/ -e cpu-clock -e ibs_fetch// -e dummy $all
rec mem -d --phys-data -W -g --all-cgroups -e ibs_op// $all
rec clock -k mono -e ibs_op// $all
rec buildid --buildid-mmap -e ibs_op// $all
rec task -e ibs_op// -c 1000000 --raw-samples
rec thread --per-thread -e ibs_op// -c 1000000 --raw-samples

perf record -q -m 16 -e ibs_op// -e ibs_fetch// -c 200000 -a --raw-samples -o $O/killed.data -- sleep 20 &
p=$!
for i in $(seq 60); do
    sleep 0.2
    [ "$(stat -c %s $O/killed.data)" -gt 60000 ] && break
done
kill -9 $p
perf record -q -m 4 -e ibs_op// -c 100000 -a --raw-samples -o $O/lost.data -- sleep 0.5 &
p=$!
sleep 0.8
kill -STOP $p
sleep 1
kill -CONT $p
wait $p
timeout -s KILL 60 perf record -q -e ibs_op// -e ibs_fetch// -c 100000 -a --raw-samples -o $O/big.data -- sleep 1.6
tar -C $O -c . >&3
