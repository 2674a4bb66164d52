# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tools/examples/notebook: its tables have the figures of the JSON."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402
from test_diff import counts  # noqa: E402

NOTEBOOK = os.path.join(HERE, '..', '..', 'tools', 'examples', 'notebook', 'memory_latency.py')
UNIT = os.path.join(ibscope.BUILD, 'tests', 'unit')
PYTHON = '/usr/bin/python3'     # has Debian's packages
RECORDINGS = {'shop': ('make_shop', '5000'), 'plain': ('make_recording', '3000'), 'none': ('make_recording', '0'),
              'fetch': ('make_recording', '3000', 'only-fetch'), 'known': ('make_lines', 'known')}
# runs it, and prints its tables
CODE = '''
import json, runpy, sys
sys.argv = sys.argv[1:]
g = runpy.run_path(sys.argv[0], run_name='__main__')
tables = {name: json.loads(g[name].to_json(orient='split')) for name in ('by_container', 'percentiles', 'causes', 'table')}
print('TABLES', json.dumps(tables))
'''


def has(module):
    return not subprocess.run([PYTHON, '-c', 'import ' + module], capture_output=True).returncode


@unittest.skipUnless(os.access(PYTHON, os.X_OK) and has('pandas'), 'python3-pandas is not installed')
class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix='ibscope-notebook.')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        for name, (program, *args) in RECORDINGS.items():
            subprocess.run([os.path.join(UNIT, program), cls.path(name), *args], check=True)

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name)

    def start(self, *args):
        path = f'{os.path.dirname(ibscope.IBSCOPE)}:{os.environ["PATH"]}'
        return subprocess.run([PYTHON, '-c', CODE, NOTEBOOK, *args], cwd=self.dir, env=dict(os.environ, PATH=path), capture_output=True,
                              text=True, timeout=120, stdin=subprocess.DEVNULL)

    def notebook(self, *args):
        """Return: what it prints, and its tables."""
        p = self.start(*args)
        self.assertEqual(p.returncode, 0, p.stderr)
        text, tables = p.stdout.split('TABLES ')
        return text, json.loads(tables)

    @staticmethod
    def json(*args):
        return [json.loads(line) for line in run(*args).stdout.splitlines()]

    def rows(self, t):
        """{index: {column: value}} of a table."""
        return {i: dict(zip(t['columns'], row)) for i, row in zip(t['index'], t['data'])}

    def test_figures(self):
        for name in 'shop', 'plain', 'known':
            with self.subTest(name):
                text, tables = self.notebook(self.path(name))
                self.assertIn('SIMULATED', text)
                report = json.loads(run('report', '--json', '--by', 'container,src', self.path(name)).stdout)
                share = {}
                for r in report['rows']:
                    key = {None: '[unknown]', '': 'host, no container'}.get(r['labels']['container'], r['labels']['container'])
                    share.setdefault(key, {})[r['labels']['src']] = r['share'] or 0
                got = self.rows(tables['by_container'])
                self.assertEqual(set(got), set(share))
                for container, row in got.items():
                    for src, value in row.items():
                        self.assertAlmostEqual(value, share[container].get(src, 0), 7)
                self.assertAlmostEqual(sum(v for row in got.values() for v in row.values()), 1, 6)
                sums = [sum(row.values()) for row in got.values()]
                self.assertEqual(sums, sorted(sums, reverse=True))
                # what replay itself finds by source
                want, = self.json('replay', '--json', '--by', 'src', self.path(name))
                self.assertEqual({src: {k: row[k] for k in ('p50', 'p90', 'p99')} | {'samples': row['samples']}
                                  for src, row in self.rows(tables['percentiles']).items()},
                                 {s['labels']['src']: {k: s[k] for k in ('p50', 'p90', 'p99')} | {'samples': s['valid']}
                                  for s in want['series'] if s['valid']})
                self.assertEqual([t[tables['table']['columns'].index('samples')] for t in tables['table']['data']],
                                 [r['samples'] for r in report['rows']])

    def test_counts(self):
        """A file of hist --json, with several intervals."""
        with open(self.path('counts'), 'w', encoding='ascii') as f:
            f.write(counts(5, 1))
        _, tables = self.notebook(self.path('shop'), '--counts', self.path('counts'))
        valid = {}
        with open(self.path('counts'), encoding='ascii') as f:
            for s in (s for line in f for s in json.loads(line)['series'] if s['valid']):
                valid[s['labels']['src']] = valid.get(s['labels']['src'], 0) + s['valid']
        self.assertEqual({src: row['samples'] for src, row in self.rows(tables['percentiles']).items()}, valid)

    def test_diff(self):
        text, tables = self.notebook(self.path('shop'), '--other', self.path('shop'))
        self.assertIn('no difference that is more than noise', text)
        diff = json.loads(run('diff', '--json', self.path('shop'), self.path('shop')).stdout)
        self.assertEqual([row['change'] for row in self.rows(tables['causes']).values()], [c['change']['change'] for c in diff['causes']])

    def test_no_samples(self):
        text, tables = self.notebook(self.path('none'))
        self.assertEqual((text.count('no samples with a latency'), tables['by_container']['data']), (2, []))

    def test_refused(self):
        """Fetches have no source: the command says so."""
        p = self.start(self.path('fetch'))
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('samples of ibs_fetch', p.stderr)
        self.assertTrue(p.stderr.endswith('ibscope report failed\n'), p.stderr)

    def test_plot(self):
        if not has('matplotlib'):
            self.skipTest('python3-matplotlib is not installed')
        self.notebook(self.path('shop'), '--plot', self.path('plot.png'))
        with open(self.path('plot.png'), 'rb') as f:
            self.assertEqual(f.read(8), b'\x89PNG\r\n\x1a\n')

    def test_cells(self):
        """The percent format: code parses, and text cells are comments."""
        with open(NOTEBOOK, encoding='utf-8') as f:
            cells = re.split(r'^# %%', f.read(), flags=re.M)[1:]
        self.assertGreater(len(cells), 5)
        for cell in cells:
            if cell.startswith(' [markdown]'):
                self.assertTrue(all(line.startswith('#') or not line for line in cell.splitlines()[1:]), cell)


if __name__ == '__main__':
    unittest.main()
