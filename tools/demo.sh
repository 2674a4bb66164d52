#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# demo.sh IBSCOPE: ten seconds of samples, from IBS if this machine has it.
set -eu
ibscope=$1
sim=' --source sim'
"$ibscope" doctor >/dev/null 2>&1 && sim=
[ -z "$sim" ] || echo 'No IBS on this machine (see `ibscope doctor`): the samples are SIMULATED.' >&2
"$ibscope" hist$sim 10 1
printf '\nNext:\n'
next() { printf '  %-51s %s\n' "$ibscope $1" "$2"; }
next "top$sim" 'show the same live'
next "hist$sim --by comm,src 10 1" 'group by thread and source'
next "record$sim -a -- sleep 5" 'keep the samples, and'
next 'report --html report.html' 'view them in a browser'
next 'doctor' 'check what this machine can sample'
