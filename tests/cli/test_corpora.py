# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each command over the corpora of hostile recordings: no report of a sanitizer, a known exit status, in bounded time."""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'fuzz', 'corpus')
FILES = sorted(f for name in ('recording', 'perf_data') for f in glob.glob(os.path.join(CORPUS, name, '*')))
TIMEOUT_S = 60  # instrumented, and beside other tests
REPORT = re.compile(r'Sanitizer|runtime error')
COMMANDS = {
    'report': ('report', '--by', 'comm,cgroup,container,symbol,dso'), 'folded': ('report', '--folded', 'total'),
    'html': ('report', '--html', '{out}'), 'pprof': ('report', '--pprof', '{out}'), 'c2c': ('c2c',), 'numa': ('numa',),
    'dump': ('dump', '--events', '--json'), 'replay': ('replay', '--by', 'comm,cgroup,cpu'),
    'perf': ('export', '--perf-data', '{out}', '-i'), 'hwloc': ('export', '--hwloc', '{out}', '-i'),
    'annotate': ('annotate', 'main', '-i'), 'merge': ('merge', '-o', '{out}'), 'top': ('top', '--once', '-i'),
    'diff': ('diff', '{same}'), 'sources': ('diff', '--per', 'access', '--causes', 'src,op,mem_node', '{same}'),
}


def run(args, path):
    """Return: (status, stderr); the status of a sanitizer's report is the one of a failure."""
    with tempfile.TemporaryDirectory(prefix='ibscope-corpora.') as d:
        args = [a.format(out=os.path.join(d, 'out'), same=path) for a in args]
        p = subprocess.run([ibscope.IBSCOPE, *args, path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
        return p.returncode, p.stderr.decode(errors='replace')


class Corpora(unittest.TestCase):
    def check(self, args):
        self.assertGreater(len(FILES), 100)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, (status, err) in zip(FILES, pool.map(lambda f: run(args, f), FILES)):
                with self.subTest(file=os.path.relpath(path, CORPUS)):
                    self.assertIn(status, (0, 1, 2), err)
                    self.assertNotRegex(err, REPORT)


def add(name, args):
    setattr(Corpora, f'test_{name}', lambda self: self.check(args))


for command, words in COMMANDS.items():
    add(command, words)

if __name__ == '__main__':
    unittest.main()
