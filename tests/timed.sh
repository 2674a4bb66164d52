#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timed.sh NAME COMMAND...: run the command, then print how long it took, and how much of that was CPU time.
TIMEFORMAT="== $1: %0R s, %0U s of CPU time and %0S s in the kernel"
shift
time "$@"
