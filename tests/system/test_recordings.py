# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`ibscope dump` and `ibscope replay` of files of perf, as their users meet them."""
import csv
import glob
import io
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import ibscope
from ibscope import residual, run

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = sorted(glob.glob(os.path.join(HERE, '../data/perf/*-opfetch.data.zst')) +
               glob.glob(os.path.join(HERE, '../data/perf/*-cgroups.data.zst')))
SELECTIONS = [
    [], ['--op', 'load'], ['--src', 'l1,l2'], ['--min-lat', '20'], ['--user'], ['-C', '1'],
    ['--comm', 'work'], ['--comm', '!work'], ['--filter', 'dc_miss || st_op'],
    ['--by', 'comm,op', '--max-groups', '2'], ['--by', 'pid,cpu', '--metric', 'tag_to_ret'],
]
BY = ('--by', '--max-groups', '--metric')

USAGE = [
    (['dump', 'a', 'b'], "'b'"),
    (['dump', '--csv', '--events', 'a'], '--events'),
    (['dump', '--fetch', 'a'], '--csv'),
    (['dump', '--limit', '0', 'a'], '--limit'),
    (['dump', '--by', 'comm', 'a'], '--by'),
    (['dump', '--explain', 'a'], '--filter'),
    (['replay', '--explain=zen4:6.12', '--user', 'a'], 'a recording has no plan'),
    (['replay', '--follow', 'a'], '--follow'),
    (['replay', '-e', 'ibs_op//,ibs_fetch//', 'a'], 'at most one event'),
    (['replay', '--min-lat', '300', '--max-lat', '200', 'a'], 'above'),
    (['replay', '--filter', 'mem_lvl == ramm', 'a'], 'ramm'),
    (['replay', '--source', 'sim', 'a'], '--source'),
]
FAILED = [
    (['dump', '/no/such/file'], '/no/such/file'),
    (['dump', '/etc/passwd'], 'unknown format'),
    (['replay', '/dev/null'], 'empty'),
]


def errors(p):
    return [line for line in p.stderr.splitlines() if line.startswith('ibscope: error: ')]


class BadInput(unittest.TestCase):
    def check(self, args, status, says):
        p = run(*args)
        self.assertEqual((p.returncode, p.stdout), (status, ''), p.stderr)
        self.assertEqual(len(errors(p)), 1, p.stderr)
        self.assertIn(says, errors(p)[0])

    def test_bad_input(self):
        for rows, status in ((USAGE, 2), (FAILED, 1)):
            for args, says in rows:
                with self.subTest(args=args):
                    self.check(args, status, says)

    def test_help(self):
        for command in ('dump', 'replay'):
            p = run(command, '--help')
            self.assertEqual((p.returncode, p.stderr), (0, ''))
            self.assertIn('usage:', p.stdout)


@unittest.skipUnless(FILES and shutil.which('zstd'), 'no recordings of perf in tests/data, or no zstd')
class Recordings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.files = []
        for f in FILES:
            cls.files.append(os.path.join(cls.dir.name, os.path.basename(f)[:-4]))
            subprocess.run(['zstd', '-dq', f, '-o', cls.files[-1]], check=True)

    def dump(self, *args):
        p = run('dump', *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def replay(self, *args):
        p = run('replay', '--json', *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def test_formats_agree(self):
        """The same samples, with the same fields, as text, CSV and JSON."""
        for f in self.files:
            text = self.dump(f)
            objects = [json.loads(x) for x in self.dump('--json', f).splitlines()]
            heads = [x for x in text.splitlines() if x.startswith(('ibs_op sample', 'ibs_fetch sample'))]
            self.assertEqual(len(heads), len(objects))
            for args, kind in ([], 'ibs_op'), (['--fetch'], 'ibs_fetch'):
                table = list(csv.DictReader(io.StringIO(self.dump('--csv', *args, f))))
                some = [o for o in objects if o['type'] == kind]
                self.assertEqual(len(table), len(some))
                for row, o in zip(table, some):
                    self.assertEqual({k: v for k, v in row.items() if v != ''},
                                     {k: str(v) for k, v in o.items()})

    def test_limit_and_events(self):
        f = self.files[0]
        whole = self.dump('--json', '--events', f).splitlines()
        kinds = [json.loads(x)['type'] for x in whole]
        self.assertEqual(kinds[0], 'recording')
        self.assertLessEqual({'comm', 'mmap', 'ibs_op'}, set(kinds))
        self.assertEqual(self.dump('--json', '--limit', '5', f),
                         ''.join(x + '\n' for x, k in zip(whole, kinds) if k.startswith('ibs_'))
                         and ''.join(self.dump('--json', f).splitlines(True)[:5]))
        text = self.dump('--events', f).splitlines()
        self.assertEqual(sum(x.startswith('mmap ') for x in text), kinds.count('mmap'))

    def test_stdin(self):
        f = self.files[0]
        with open(f, 'rb') as data:
            p = subprocess.run([ibscope.IBSCOPE, 'dump', '--json', '-'], stdin=data,
                               capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout), (0, self.dump('--json', f)))

    def test_dump_selects_what_replay_counts(self):
        for f in self.files:
            for sel in SELECTIONS:
                with self.subTest(file=f, sel=sel):
                    only = [] if set(sel) & set(BY) else sel
                    rows = [json.loads(x) for x in self.dump('--json', *only, f).splitlines()]
                    got = self.replay(*sel, f)
                    self.assertEqual(residual(got['ledger']), 0)
                    self.assertEqual((got['source'], got['simulated']), ('replay', False))
                    self.assertEqual(got['ledger']['aggregated'],
                                     sum(o['type'] == 'ibs_op' for o in rows))
                    self.assertEqual(got['ledger']['aggregated'],
                                     sum(s['samples'] for s in got['series']))

    def test_cut_off(self):
        """Existing data is shown, missing data is reported."""
        f = os.path.join(self.dir.name, 'cut')
        with open(self.files[0], 'rb') as whole, open(f, 'wb') as out:
            out.write(whole.read()[:-3000])
        p = run('dump', '--json', f)
        self.assertEqual(p.returncode, 1)
        self.assertEqual(len(errors(p)), 1, p.stderr)
        self.assertGreater(len(p.stdout.splitlines()), 10)
        p = run('replay', '--json', f)
        self.assertEqual((p.returncode, len(errors(p))), (1, 1))
        self.assertFalse(json.loads(p.stdout)['recorded']['whole'])

    @unittest.skipUnless(os.geteuid() == 0, 'not root, so there is no privilege to drop')
    def test_no_privilege(self):
        os.chmod(self.dir.name, 0o755)
        cmd = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', ibscope.IBSCOPE, 'replay']
        p = subprocess.run(cmd + [self.files[0]], capture_output=True, text=True)
        if 'setpriv' in p.stderr:
            self.skipTest('the build directory is not open to other users')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stdout, run('replay', self.files[0]).stdout)


if __name__ == '__main__':
    unittest.main()
