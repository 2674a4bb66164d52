#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""coverage.py [--build DIR] [KERNEL:GEN ...]: how many of a hundred windows have the truth in their 95 % interval.

The truth of a source is its share of the miss cycles of all windows: the guest does the same all the time, on one processor
whose clock counts instructions. What hundred windows are off by is a tenth of what one is.
"""
import json
import sys

import guest
from guest import need

PAIRS = '6.12:zen4', '7.2:zen5'
WINDOWS = 100
PERIOD, SECONDS = 60000, 0.5
FEWEST = 20         # samples of a source in a window; tables mark what has fewer


def rows_of(g):
    """The miss cycles of each source and window, with their interval, by second."""
    out = {}
    for line in map(json.loads, g.stdout('windows').splitlines()):
        for s in line['series']:
            if s['samples'] >= FEWEST and None not in (s['miss_cycles'], s['low'], s['high']):
                out.setdefault(s['labels']['src'], []).append([s[k] / line['interval_s'] for k in ('miss_cycles', 'low', 'high')])
    return {src: windows for src, windows in out.items() if len(windows) == WINDOWS and any(w[0] for w in windows)}


def check(g):
    """All sources together: 93 to 97 of 100. Of a single one, a hundred windows cannot tell 90 from 95."""
    rows, inside, said = rows_of(g), 0, []
    need(len(rows) >= 3, 'only %s' % sorted(rows))
    for src, windows in sorted(rows.items()):
        truth = sum(w[0] for w in windows) / WINDOWS
        n = sum(low <= truth <= high for _, low, high in windows)
        width = sum(high - low for _, low, high in windows) / WINDOWS / truth
        said.append('%s %d (+-%.0f %%)' % (src, n, 50 * width))
        inside += n
    share = 100 * inside / WINDOWS / len(rows)
    need(93 <= share <= 97, '%.1f of 100: %s' % (share, ', '.join(said)))
    return '%.1f of 100 windows: %s' % (share, ', '.join(said))


def scenarios(g):
    g.do('start a /a 0')
    g.do('run windows ibscope hist --json --plan program --by src -e ibs_op/cnt_ctl=1/ -c %d %s %d' % (PERIOD, SECONDS, WINDOWS))
    g.check('95 % intervals', check, g)
    g.check('the kernel did not complain', g.check_console)


def main():
    return guest.run_pairs(guest.options(__doc__.splitlines()[0]), PAIRS, '-coverage', scenarios)


if __name__ == '__main__':
    sys.exit(main())
