#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# demo.sh IBSCOPE: ten seconds of samples, from IBS if this machine has it.
set -eu
ibscope=$1
source=sim
"$ibscope" doctor >/dev/null 2>&1 && source=ibs
[ $source = ibs ] || echo 'No IBS on this machine (see `ibscope doctor`): the samples are SIMULATED.' >&2
"$ibscope" hist --source $source 10 1
echo
echo "Next: $ibscope hist --source $source --by comm,src 10 1   |   $ibscope help hist   |   $ibscope doctor"
