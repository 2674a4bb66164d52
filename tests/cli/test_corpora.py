# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each command over the corpora of hostile recordings: no report of a sanitizer, a known exit status, in bounded time.
All files are read in one process for each command, and some of them, other ones for each, in a process of their own."""
import glob
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'fuzz', 'corpus')
FILES = sorted(f for name in ('recording', 'perf_data') for f in glob.glob(os.path.join(CORPUS, name, '*')))
TIMEOUT_S = 60  # instrumented, and beside other tests
OWN = 4         # one of so many files is also read by a process of its own
REPORT = re.compile(r'Sanitizer|runtime error')
COMMANDS = {
    'report': ('report', '--by', 'comm,cgroup,container,symbol,dso'), 'folded': ('report', '--folded', 'total'),
    'html': ('report', '--html', '{out}'), 'pprof': ('report', '--pprof', '{out}'), 'c2c': ('c2c',), 'numa': ('numa',),
    'dump': ('dump', '--events', '--json'), 'replay': ('replay', '--by', 'comm,cgroup,cpu'),
    'perf': ('export', '--perf-data', '{out}', '-i'), 'hwloc': ('export', '--hwloc', '{out}', '-i'),
    'annotate': ('annotate', 'main', '-i'), 'merge': ('merge', '-o', '{out}'), 'top': ('top', '--once', '-i'),
    'diff': ('diff', '@'), 'sources': ('diff', '--per', 'access', '--causes', 'src,op,mem_node', '@'),
}


class Corpora(unittest.TestCase):
    def check_each(self, args):
        """All files in one process."""
        returned, done, err = ibscope.run_each('-', [*args, '@'], FILES, TIMEOUT_S * 10)
        # the one after these is the one that ended it, unless that is a leak, of any
        self.assertEqual([path for _, path in done], FILES, err[-5000:])
        self.assertEqual(returned, 0, err[-5000:])
        self.assertNotRegex(err, REPORT)
        for status, path in done:
            self.assertIn(status, (0, 1, 2), path)

    def check_own(self, args, paths):
        """Processes that read nothing before."""
        for path in paths:
            with self.subTest(file=os.path.relpath(path, CORPUS)):
                p = ibscope.run(*(path if a == '@' else a for a in args), path, timeout=TIMEOUT_S, errors='replace')
                self.assertIn(p.returncode, (0, 1, 2), p.stderr)
                self.assertNotRegex(p.stderr, REPORT)

    def check(self, args, which):
        self.assertGreater(len(FILES), 100)
        with tempfile.TemporaryDirectory(prefix='ibscope-corpora.') as d:
            args = [a.format(out=os.path.join(d, 'out')) for a in args]
            self.check_each(args)
            self.check_own(args, FILES[which * OWN::len(COMMANDS) * OWN])


def add(which, name, args):
    setattr(Corpora, f'test_{name}', lambda self: self.check(args, which))


for i, (command, words) in enumerate(COMMANDS.items()):
    add(i, command, words)

if __name__ == '__main__':
    unittest.main()
