#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# demo.sh IBSCOPE: ten seconds of samples, from IBS if this machine has it; then three small programs, recorded.
set -eu
ibscope=$1
examples=$(dirname "$0")/examples
sim=' --source sim'
"$ibscope" doctor >/dev/null 2>&1 && sim=
[ -z "$sim" ] || echo 'No IBS on this machine (see `ibscope doctor`): the samples are SIMULATED.' >&2
"$ibscope" hist$sim 10 1

# tables as wide as the terminal, though they go through a pipe
[ ! -t 1 ] || COLUMNS=$(stty size <&1 | cut -d' ' -f2)
export COLUMNS="${COLUMNS:-}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
show() { # PROGRAM TITLE COMMAND...: record the program, and print the sentence about sharing and the first lines of the table
	program=$1 title=$2
	shift 2
	cc -O1 -g -pthread -o "$dir/$program" "$examples/$program.c"
	"$ibscope" record$sim -c 100000 -o "$dir/data" -- "$dir/$program" 2 >/dev/null 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
	printf '\n%s\n$ ibscope record -c 100000 -- ./%s && ibscope %s\n' "$title" "$program" "$*"
	"$ibscope" "$@" -i "$dir/data" 2>"$dir/log" |
		awk '/shared line.* of HITM/; /^[A-Z]+( [A-Z]+)?  +[A-Z]+ / { on = 1 }
			on && n++ < 24 { if (!NF) blank = 1; else { if (blank) print ""; blank = 0; print } } END { exit !n }' || cat "$dir/log" >&2
}
show pointer_chase 'Which function waits: a linked list' report --by symbol,src --top 3
show hot_field 'Which field of which structure' report --by type,field --top 3
show false_sharing 'Which cache lines threads share, and what is in them' c2c --top 3
show pointer_chase 'Which instruction' annotate walk_list

printf '\nNext:\n'
next() { printf '  %-51s %s\n' "$ibscope $1" "$2"; }
next "top$sim" 'show the same live'
next "hist$sim --by comm,src 10 1" 'group by thread and source'
next "record$sim -a -- sleep 5" 'keep the samples, and'
next 'report --html report.html' 'view them in a browser'
next 'doctor' 'check what this machine can sample'
