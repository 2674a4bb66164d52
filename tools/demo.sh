#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# demo.sh IBSCOPE [SECONDS]: ten seconds of samples, from IBS if this machine has it; then three small programs, recorded.
# Every command that is printed works as it is, here.
set -eu
ibscope=$1 seconds=${2:-10}
examples=$(dirname "$0")/examples
built=$(dirname "$ibscope")/examples
sim=' --source sim'
"$ibscope" doctor >/dev/null 2>&1 && sim=
[ -z "$sim" ] || echo 'No IBS on this machine (see `'"$ibscope"' doctor`): the samples are SIMULATED.' >&2

# tables as wide as the terminal, though they go through a pipe
exec 3<&1
[ ! -t 1 ] || COLUMNS=$(stty size <&3 | cut -d' ' -f2)
export COLUMNS="${COLUMNS:-}"

printf '$ %s hist%s %s 1\n' "$ibscope" "$sim" "$seconds"
"$ibscope" hist$sim "$seconds" 1 | cat

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$built"
show() { # PROGRAM TITLE COMMAND...: record the program, and print the sentence about sharing and the first lines of the table
	program=$built/$1 title=$2
	shift 2
	cc -O1 -g -pthread -o "$program" "$examples/${program##*/}.c"
	"$ibscope" record$sim -c 100000 -o "$dir/data" -- "$program" 2 >/dev/null 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
	printf '\n%s\n$ %s record%s -c 100000 -- %s 2\n$ %s %s\n' "$title" "$ibscope" "$sim" "$program" "$ibscope" "$*"
	"$ibscope" "$@" -i "$dir/data" 2>"$dir/log" |
		awk '/shared line.* of HITM/; /^[A-Z]+( [A-Z]+)?  +[A-Z]+ / { on = 1 }
			on && n++ < 24 { if (!NF) blank = 1; else { if (blank) print ""; blank = 0; print } } END { exit !n }' || cat "$dir/log" >&2
}
show pointer_chase 'Which function waits: a linked list' report --by symbol,src --top 3
show hot_field 'Which field of which structure' report --by type,field --top 3
show false_sharing 'Which cache lines threads share, and what is in them' c2c --top 3
show pointer_chase 'Which instruction' annotate walk_list

printf '\nNext: %s top%s\n' "$ibscope" "$sim"
printf 'Next: %s hist%s --html page.html 1 10\n' "$ibscope" "$sim"
