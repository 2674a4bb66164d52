# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fish completion of ibscope and ibscope-exporter: the programs complete words themselves

function __ibscope_complete
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l option
    set -l given $words[2..] $cur
    if test (count $words) -lt 2
        set given $cur
    end
    if string match -qr '^--[^=]+=' -- $cur
        set option (string replace -r '=.*' '' -- $cur)
        set given $words[2..] $option (string replace -r '^[^=]*=' '' -- $cur)
    end
    for line in (IBSCOPE_COMPLETE=1 $words[1] $given 2>/dev/null </dev/null)
        switch $line
            case :files
                __fish_complete_path $cur
            case :dirs
                __fish_complete_directories $cur
            case :commands
                __fish_complete_command
            case '*'
                test -n "$option"; and echo "$option=$line"; or echo $line
        end
    end
end

complete -c ibscope -c ibscope-exporter -f -a '(__ibscope_complete)'
