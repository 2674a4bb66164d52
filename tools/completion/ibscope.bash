# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bash completion of ibscope and ibscope-exporter, generated from --help

# The options of a help text on standard input, one line each: "--name", "-n", or "ARGUMENT<tab>--name<tab>its description".
_ibscope_options()
{
	awk '
	function flush() { if (name) print arg "\t" name "\t" text; if (letter) print arg "\t" letter "\t" text
		name = letter = arg = text = "" }
	/^ +(-[A-Za-z], )?--[a-z]/ {
		flush()
		rest = substr($0, match($0, /-/))
		if (match(rest, /^-[A-Za-z], /)) { letter = substr(rest, 1, 2); rest = substr(rest, 5) }
		match(rest, /^--[-.a-z0-9]+/)
		name = substr(rest, 1, RLENGTH)
		rest = substr(rest, RLENGTH + 1)
		if (match(rest, /^[ =][^ ]+/)) { arg = substr(rest, 2, RLENGTH - 1); rest = substr(rest, RLENGTH + 1) }
		sub(/^ +/, "", rest)
		text = rest
		next
	}
	name && substr($0, 1, 20) ~ /^ +$/ { sub(/^ +/, " "); text = text $0; next }
	{ flush() }
	END { flush() }'
}

# The values of option $1 that help text $2 lists.
_ibscope_values()
{
	awk -v option="$1" '
	function words(s) { gsub(/\([^)]*\)/, "", s); gsub(/[,|]/, " ", s); print s; exit }
	option == "--src" && /^data_src .*: / || option == "--op" && /^op: / {
		sub(/^[^:]*: /, ""); sub(/;.*/, ""); words($0) }
	option == "--by" && /^Keys of --by:/ || option ~ /^--(columns|sort)$/ && /^Columns:/ { list = 1; next }
	list && !/^  [a-z]/ { print all; exit }
	list { all = all " " $1 }
	' "$2"
}

_ibscope_values_of()
{
	local option=$1 help=$2 row arg text values

	values=$(_ibscope_values "$option" <(printf '%s\n' "$help"; [[ $option != --src && $option != --op ]] ||
		"$program" help filter 2>/dev/null))
	if [[ -z $values ]]; then
		row=$(_ibscope_options <<<"$help" | awk -F'\t' -v o="$option" '$2 == o' | head -n 1)
		IFS=$'\t' read -r arg _ text <<<"${row/#$'\t'/-$'\t'}"
		if [[ $arg == *'|'* ]]; then
			values=${arg//|/ }
		elif [[ $option == --by && $text == *' by '* ]]; then
			values=${text#* by }
		elif [[ $option != --by && $text == *': '* ]]; then
			values=${text#*: }
		fi
		values=$(sed -e 's/;.*//' -e 's/([^)]*)//g' -e 's/ *, */,/g' -e 's/ *$//' <<<"$values")
		# a list of single words, not a sentence
		[[ $values =~ ^[-a-z0-9_,]*$ || $arg == *'|'* ]] || values=
	fi
	printf '%s\n' "${values//,/ }"
}

# Complete the last part of a list with commas.
_ibscope_list()
{
	local word=$1 values=$2 before=

	[[ $word == *,* ]] && before=${word%,*},
	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$values" -- "${word##*,}")
	compopt -o nospace 2>/dev/null
}

_ibscope_cgroups()
{
	local mount word=$1 before=

	mount=$(awk '{ for (i = 1; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") { print $5; exit } }' \
		/proc/self/mountinfo 2>/dev/null)
	[[ -n $mount ]] || return
	[[ $word == *,* ]] && before=${word%,*},
	word=${word##*,}
	mapfile -t COMPREPLY < <(compgen -d -- "$mount/${word#/}" | sed "s|^$mount|$before|")
	compopt -o nospace 2>/dev/null
}

# The options of serve without dashes, followed by "=" if they take a value and $1 is "set".
_ibscope_names()
{
	local names

	names=$("$program" serve --help 2>/dev/null </dev/null | _ibscope_options |
		awk -F'\t' -v eq="$([[ $1 == set ]] && printf '=')" \
			'$2 ~ /^--/ && $2 !~ /^--(help|version)$/ { print substr($2, 3) ($1 == "" ? "" : eq) }')
	mapfile -t COMPREPLY < <(compgen -W "$names" -- "$cur")
	compopt -o nospace 2>/dev/null
	return 0
}

_ibscope_commands()
{
	"$program" --help 2>/dev/null | awk '/^  [a-z]/ { print $1 }'
}

_ibscope()
{
	local program=${COMP_WORDS[0]} cur prev command='' help options option arg

	cur=${COMP_WORDS[COMP_CWORD]}
	prev=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	# bash splits --name=value into three words
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ ${program##*/} != ibscope-exporter ]]; then
		if ((COMP_CWORD == 1)); then
			mapfile -t COMPREPLY < <(compgen -W "$(_ibscope_commands) help --help --version" -- "$cur")
			return
		fi
		command=${COMP_WORDS[1]}
		if [[ $command == help || $command == --help ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_ibscope_commands) filter" -- "$cur")
			return
		fi
	fi
	help=$("$program" ${command:+"$command"} --help 2>/dev/null </dev/null) || return
	options=$(_ibscope_options <<<"$help")

	[[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD - 1]}
	if [[ $prev == -* ]]; then
		arg=$(awk -F'\t' -v o="$prev" '$2 == o { print $1; exit }' <<<"$options")
		case $arg in
		'') ;;
		*FILE*)
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			compopt -o filenames 2>/dev/null
			return
			;;
		*DIR*)
			mapfile -t COMPREPLY < <(compgen -d -- "$cur")
			compopt -o filenames 2>/dev/null
			return
			;;
		*)
			if [[ $prev == --cgroup ]]; then
				_ibscope_cgroups "$cur"
			elif [[ $arg == *,..* ]]; then
				_ibscope_list "$cur" "$(_ibscope_values_of "$prev" "$help")"
			else
				mapfile -t COMPREPLY < <(compgen -W "$(_ibscope_values_of "$prev" "$help")" -- "$cur")
			fi
			return
			;;
		esac
	fi
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(cut -f 2 <<<"$options")" -- "$cur")
		return
	fi
	case $command in
	ctl)
		for option in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
			[[ $option == set || $option == unset ]] && _ibscope_names "$option" && return
		done
		option=$(awk '/^Options:/ { exit } /^  [a-z]/ { print $1 }' <<<"$help")
		mapfile -t COMPREPLY < <(compgen -W "$option" -- "$cur")
		;;
	dump | report | replay | export)
		# a recording
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		compopt -o filenames 2>/dev/null
		;;
	record | hist)
		# a command follows "--"
		for option in "${COMP_WORDS[@]:2:COMP_CWORD-2}"; do
			[[ $option == -- ]] && mapfile -t COMPREPLY < <(compgen -c -- "$cur") && return
		done
		;;
	esac
}

complete -F _ibscope ibscope ibscope-exporter
