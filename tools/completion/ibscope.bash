# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bash completion of ibscope and ibscope-exporter: the programs complete words themselves

_ibscope_cgroups()
{
	local mount word=${1##*,} before= i

	mount=$(awk '{ for (i = 1; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") { print $5; exit } }' \
		/proc/self/mountinfo 2>/dev/null)
	[[ -n $mount ]] || return
	[[ $1 == *,* ]] && before=${1%,*},
	mapfile -t COMPREPLY < <(compgen -d -- "$mount/${word#/}")
	# cgroup names can contain anything, and bash inserts these words unquoted
	for i in "${!COMPREPLY[@]}"; do
		printf -v "COMPREPLY[i]" '%s%q' "$before" "${COMPREPLY[i]#"$mount"}"
	done
	compopt -o nospace 2>/dev/null
}

_ibscope()
{
	local program=${COMP_WORDS[0]} words=("${COMP_WORDS[@]:1:COMP_CWORD}") cur i offers

	# bash splits --name=value into three words
	for i in "${!words[@]}"; do
		[[ ${words[i]} == = ]] && { ((i == ${#words[@]} - 1)) && words[i]='' || unset "words[i]"; }
	done
	words=("${words[@]}")
	cur=${words[-1]}
	COMPREPLY=()
	if ((${#words[@]} > 1)) && [[ ${words[-2]} == --cgroup ]]; then
		_ibscope_cgroups "$cur"
		return
	fi
	offers=$(IBSCOPE_COMPLETE=1 "$program" "${words[@]}" 2>/dev/null </dev/null)
	case $offers in
	:files) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); compopt -o filenames 2>/dev/null ;;
	:dirs) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); compopt -o filenames 2>/dev/null ;;
	:commands) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	?*)
		mapfile -t COMPREPLY < <(cut -f 1 <<<"$offers")
		[[ ${COMPREPLY[0]} == *[,=]* ]] && compopt -o nospace 2>/dev/null
		;;
	esac
	return 0
}

complete -F _ibscope ibscope ibscope-exporter
