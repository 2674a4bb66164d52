# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# %% [markdown]
# # Memory latency in pandas
#
# Reads the JSON of `ibscope report`, `ibscope replay` (or a file of `ibscope hist --json`) and `ibscope diff`.
# JSON Schemas in /usr/share/ibscope/schemas describe each member.
#
# Jupyter (with jupytext), Spyder and VS Code open this file as a notebook; it is a script, too:
#
#     python3 memory_latency.py RECORDING [--counts HIST_JSON] [--other RECORDING] [--plot PNG]
#
# Needs python3-pandas, and python3-matplotlib for the plot.

# %%
import argparse
import json
import math
import subprocess
import sys

import pandas

# In a notebook, set these. COUNTS is a file that `ibscope hist --json` wrote, OTHER a recording to compare with.
RECORDING, COUNTS, OTHER, PLOT = 'recording.ibs', None, None, None

if 'ipykernel' not in sys.modules:
    parser = argparse.ArgumentParser(description='Print tables of memory latency by container and source.')
    parser.add_argument('recording')
    parser.add_argument('--counts', metavar='HIST_JSON', help='output of `ibscope hist --json`; default that of `ibscope replay`')
    parser.add_argument('--other', metavar='RECORDING', help='compare with this recording')
    parser.add_argument('--plot', metavar='PNG', help='write the plot to this file')
    arguments = parser.parse_args()
    RECORDING, COUNTS, OTHER, PLOT = arguments.recording, arguments.counts, arguments.other, arguments.plot


def ibscope(*words):
    """The output of a command, which prints warnings and errors itself."""
    p = subprocess.run(['ibscope', *words], stdout=subprocess.PIPE, text=True)
    if p.returncode:
        sys.exit(f'ibscope {words[0]} failed')
    return p.stdout


def table_of(rows):
    """Rows of JSON as a table: labels become columns; null becomes NaN, which is unknown rather than zero."""
    return pandas.DataFrame(columns=None if rows else ['container', 'src', 'share'], data=[{**row['labels'], **{k: v for k, v in row.items() if k not in ('labels', 'mangled')}} for row in rows])


# %% [markdown]
# ## Containers and sources
#
# Miss cycles are latency times the ops that a sample represents. They are null in a recording without a period;
# then only shares are known.

# %%
report = json.loads(ibscope('report', '--json', '--by', 'container,src', RECORDING))
if report['simulated']:
    print('SIMULATED samples, not measurements')
if not report['whole'] or report['lost']['samples']:
    print('some samples are missing:', report['missing'] or f'{report["lost"]["samples"]} were lost')

table = table_of(report['rows'])
# "" is what runs in no container, null an unknown one
table['container'] = table['container'].fillna('[unknown]').replace('', 'host, no container')
table['src'] = table['src'].fillna('[unknown]')
by_container = table.pivot_table(index='container', columns='src', values='share', aggfunc='sum', fill_value=0, observed=True)
by_container = by_container.loc[by_container.sum(axis=1).sort_values(ascending=False).index, (by_container > 0).any()]
print('\nShare of miss cycles by container and source, %')
print((100 * by_container).round(1).to_string() if by_container.size else 'no samples with a latency')

# %% [markdown]
# ## Percentiles
#
# Percentiles of several rows cannot be averaged, but their histograms add up. Buckets are pairs of an inclusive
# upper edge in core cycles and a number of samples. A percentile is the upper edge of its bucket, and unknown if
# fewer than one sample is above it.


# %%
def percentile(buckets, percent):
    valid, below = sum(buckets.values()), 0
    if not valid or valid * (100 - percent) < 100:
        return None
    rank = math.ceil(valid * percent / 100)
    for edge, samples in sorted(buckets.items()):
        below += samples
        if below >= rank:
            return edge


def add_up(series, key):
    """Histograms by the values of a key."""
    sums = {}
    for row in series:
        buckets = sums.setdefault(row['labels'].get(key, '[unknown]'), {})
        for edge, samples in row['buckets']:
            buckets[edge] = buckets.get(edge, 0) + samples
    return sums


if COUNTS:
    with open(COUNTS, encoding='utf-8') as f:
        text = f.read()
else:
    text = ibscope('replay', '--json', '--by', 'container,src', RECORDING)
# an object per line for each interval, and event; others than the first have other latencies
intervals = [json.loads(line) for line in text.splitlines()]
intervals = [i for i in intervals if i['metric'] == intervals[0]['metric']]
histograms = add_up((row for i in intervals for row in i['series']), 'src')
percentiles = pandas.DataFrame({src: {f'p{p}': percentile(buckets, p) for p in (50, 90, 99)} | {'samples': sum(buckets.values())}
                                for src, buckets in histograms.items() if buckets}).T.astype('Int64')
print(f'\nPercentiles of {intervals[0]["metric"]} by source, core cycles')
print(percentiles.to_string() if len(percentiles) else 'no samples with a latency')

# %% [markdown]
# ## What changed
#
# `ibscope diff` splits the change into causes that add up to it. Those that are no findings are within noise.

# %%
causes = pandas.DataFrame()
if OTHER:
    diff = json.loads(ibscope('diff', '--json', RECORDING, OTHER))
    causes = pandas.DataFrame([{'cause': c['cause'], 'kind': c['kind'], **c['change']} for c in diff['causes']])
    of = f'miss cycles per {diff["unit"] or diff["per"]}'
    print(f'\nFrom {diff["a"]["value"]:.4g} to {diff["b"]["value"]:.4g} {of}')
    print(causes[causes['finding']].to_string() if causes['finding'].any() else 'no difference that is more than noise')

# %% [markdown]
# ## Plot

# %%
try:
    import matplotlib
except ImportError:
    matplotlib = None
    print('\nno plot: matplotlib is not installed', file=sys.stderr)

if matplotlib and by_container.size:
    if PLOT:
        matplotlib.use('Agg')
    axes = by_container.head(20).iloc[::-1].plot.barh(stacked=True, figsize=(10, 6), xlabel='share of miss cycles', ylabel='')
    axes.set_title('SIMULATED samples' if report['simulated'] else report['host'] or '')
    axes.figure.tight_layout()
    if PLOT:
        axes.figure.savefig(PLOT)
