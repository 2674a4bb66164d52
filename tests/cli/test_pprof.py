# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`report --pprof` against `report --json`: decoded here, and read by Go's pprof."""
import collections
import functools
import gzip
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import browser  # noqa: E402
import ibscope  # noqa: E402
import npm  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
SHOP = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_shop')
SPEEDSCOPE = 'speedscope@1.25.0'
VALUES = ['samples', 'miss_cycles', 'remote_miss_cycles', 'estimated_ops', 'dram']
REMOTE = ['remote-cache', 'remote-dram', 'remote-pmem', 'remote-cxl']


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """{number: [values]} of a message; bytes where the field has a length"""
    out, at = collections.defaultdict(list), 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        out[tag >> 3].append(value)
    assert at == len(data)
    return out


def packed(data):
    out, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        out.append(value)
    return out


class Profile:
    def __init__(self, path):
        with gzip.open(path) as f:
            top = fields(f.read())
        text = [s.decode() for s in top[6]]
        assert text[0] == ''
        self.types = [text[fields(t)[1][0]] for t in top[1]]
        self.comments = [text[i] for i in top[13]]
        functions = {f[1][0]: text[f[2][0]] for f in map(fields, top[5])}
        assert len(functions) == len(top[5])
        self.functions = {(text[f[2][0]], text[f[3][0]]) for f in map(fields, top[5])}
        self.mappings = [{'start': m[2][0], 'end': m[3][0], 'file': text[m[5][0]], 'build_id': text[m[6][0]]}
                         for m in map(fields, top[3])]
        locations = {}
        for loc in map(fields, top[4]):
            locations[loc[1][0]] = functions[fields(loc[4][0])[1][0]]
            if loc[2][0]:
                m = self.mappings[loc[2][0] - 1]
                assert m['start'] <= loc[3][0] < m['end'], (m, loc)
        self.samples = []
        for s in map(fields, top[2]):
            labels = {}
            for label in map(fields, s[3]):
                labels[text[label[1][0]]] = text[label[2][0]] if 2 in label else label[3][0]
            self.samples.append(([locations[i] for i in packed(s[1][0])], packed(s[2][0]), labels))

    def sums(self, *keys):
        """{labels: values}"""
        out = {}
        for _, values, labels in self.samples:
            key = tuple(labels.get(k) for k in keys)
            out[key] = [a + b for a, b in zip(out.get(key, [0] * len(values)), values)]
        return out


class Pprof(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)

    def make(self, *args):
        path = os.path.join(self.dir.name, '-'.join(args) + '.ibs')
        subprocess.run([MAKE, path, *args], check=True)
        return path

    def profile(self, file, *args):
        path = f'{file}{"".join(args).replace("/", "_")}.pb.gz'
        p = run('report', file, '--pprof', path, *args)
        self.assertEqual((p.returncode, p.stdout), (0, ''), p.stderr)
        return path

    def rows(self, file, by, *args):
        p = run('report', file, '--json', '--by', by, *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)['rows']

    def test_values_and_labels(self):
        file = self.make('3000')
        for args in ([], ['--src', 'dram,remote-dram'], ['--metric', 'tlb_refill_lat']):
            profile = Profile(self.profile(file, *args))
            self.assertEqual(profile.types, VALUES)
            self.assertIn('SIMULATED samples', profile.comments)
            for key, label in (('src', 'source'), ('container', 'container'), ('pod', 'pod'), ('op', 'op'),
                               ('node', 'node'), ('page_size', 'page_size'), ('comm', 'thread'), ('tid', 'tid')):
                want = collections.Counter()
                for row in self.rows(file, f'{key},src', *args):
                    name, src = row['labels'][key] or None, row['labels']['src']
                    name = int(name) if name and key == 'page_size' else name
                    # one escaping for all texts, and JSON has another
                    name = None if label == 'thread' else name
                    cycles = 100000 * (row['total'] or 0)
                    for i, v in enumerate((row['samples'], cycles, cycles * (src in REMOTE), row['estimated_ops'],
                                           row['samples'] * (src in ('dram', 'remote-dram')))):
                        want[name, i] += v
                for (name,), values in profile.sums(label).items():
                    for i, v in enumerate(values):
                        want[None if label == 'thread' else name, i] -= v
                self.assertEqual({k: v for k, v in want.items() if v}, {}, (key, args))

    def test_labels_are_those_of_by(self):
        file = self.make('500')
        profile = Profile(self.profile(file, '--by', 'cpu,src'))
        self.assertEqual({k for _, _, labels in profile.samples for k in labels}, {'cpu', 'source'})

    def test_symbols(self):
        profile = Profile(self.profile(self.make('500', 'self')))
        self.assertEqual({tuple(stack) for stack, _, _ in profile.samples}, {('main', 'SIMULATED')})
        self.assertEqual([m['file'] for m in profile.mappings], [os.path.realpath(MAKE)])

    def test_chains_are_those_of_folded(self):
        file = self.make('2000', 'stacks')
        profile = Profile(self.profile(file, '--by', 'comm'))
        depths = collections.Counter()
        for stack, values, _ in profile.samples:
            depths[len(stack)] += values[0]
        p = run('report', file, '--folded', 'samples')
        for line in p.stdout.splitlines():
            stack, n = line.rsplit(' ', 1)
            depths[stack.count(';')] -= int(n)
        self.assertEqual(set(depths.values()), {0})
        self.assertGreater(max(depths), 2)

    def test_hostile_names(self):
        with gzip.open(self.profile(self.make('3000'))) as f:
            text = b'\n'.join(fields(f.read())[6])
        self.assertNotRegex(text, rb'[\x00-\x09\x0b-\x1f\x7f]')
        text.decode()
        self.assertIn(rb'new\x0aline', text)

    def test_output(self):
        file = self.make('500')
        p = subprocess.run([ibscope.IBSCOPE, 'report', '--pprof', '-', '--by', 'src', file], capture_output=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        path = os.path.join(self.dir.name, 'stdout.pb.gz')
        with open(path, 'wb') as f:
            f.write(p.stdout)
        self.assertEqual(Profile(path).sums('source'), Profile(self.profile(file, '--by', 'src')).sums('source'))
        for args, says in ((['--pprof', '/dev/full'], 'No space left'), (['--pprof', '/no/dir/x'], '/no/dir/x')):
            p = run('report', file, *args)
            self.assertEqual(p.returncode, 1)
            self.assertIn(says, p.stderr)
        p = run('report', file, '--pprof', path, '--csv')
        self.assertEqual(p.returncode, 2)
        self.assertIn('exclude each other', p.stderr)

    def go(self, *args):
        env = dict(os.environ, HOME=self.dir.name, PPROF_TMPDIR=self.dir.name, GOFLAGS='', GOTOOLCHAIN='local')
        p = subprocess.run(['go', 'tool', 'pprof', *args], capture_output=True, text=True, env=env)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_parts(self):
        """It is compressed in parts of 256 KiB, by several threads: their number does not change the file."""
        file, path = self.make('4000', 'random'), os.path.join(self.dir.name, 'parts.pb.gz')
        cpus, written = os.sched_getaffinity(0), []
        for use in (cpus, {min(cpus)}):
            subprocess.run([os.path.join(ibscope.BUILD, 'ibscope'), 'report', file, '--pprof', path], check=True,
                           stderr=subprocess.DEVNULL, preexec_fn=lambda use=use: os.sched_setaffinity(0, use))
            with open(path, 'rb') as f:
                written.append(f.read())
        self.assertGreater(len(gzip.decompress(written[0])), 3 * 256 * 1024)
        self.assertEqual(*written)

    @unittest.skipUnless(shutil.which('go'), 'no go')
    def test_go(self):
        def total(text):
            return int(re.search(r'accounting for (\d+)', text).group(1))
        file = self.make('3000', 'self')
        path = self.profile(file)
        cycles = 100000 * sum(row['total'] or 0 for row in self.rows(file, 'src'))
        top = self.go('-top', path)
        self.assertIn('Type: miss_cycles', top)
        self.assertIn('SIMULATED samples', top)
        self.assertEqual(total(top), cycles)
        self.assertRegex(top, r'100% +main')
        contained = self.make('3000')   # those of the first file are the host's
        web = [row for row in self.rows(contained, 'container') if row['labels']['container'] == 'web']
        self.assertEqual(total(self.go('-top', '-tagfocus=container=web', self.profile(contained))), 100000 * web[0]['total'])
        self.assertEqual(total(self.go('-top', '-tagfocus=page_size=4kb', path)), cycles)
        self.assertIn(f'{100000 * 3000}ops', self.go('-top', '-sample_index=estimated_ops', path))
        self.assertEqual(total(self.go('-top', f'-diff_base={path}', path)), 0)
        more = self.profile(self.make('4000', 'self'))
        diff = self.go('-top', f'-diff_base={path}', more)
        grown = 100000 * sum(row['total'] or 0 for row in self.rows(more.removesuffix('.pb.gz'), 'src'))
        self.assertEqual(total(diff), grown - cycles)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@unittest.skipUnless(shutil.which('chromium'), 'needs chromium')
class Speedscope(unittest.TestCase):
    """The package has no interface for programs: its page imports the profile in a browser."""

    def test_import(self):
        with tempfile.TemporaryDirectory() as d:
            site = os.path.join(npm.unpack(SPEEDSCOPE, d), 'dist', 'release')
            file = os.path.join(d, 'shop')
            subprocess.run([SHOP, file, '20000'], check=True)
            self.assertEqual(run('report', file, '--pprof', os.path.join(site, 'ours.pb.gz')).returncode, 0)
            server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=site))
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
            with browser.browse().page() as b:
                b.open(f'http://127.0.0.1:{server.server_port}/index.html#profileURL=ours.pb.gz&view=sandwich')
                b.until("document.body?.innerText.includes('Symbol Name') ?? false")
                text = b.js('document.body.innerText')
            rows = json.loads(run('report', file, '--json', '--by', 'symbol').stdout)['rows']
        # total, self and name of functions, in miss cycles
        shown = {name: int(own.replace(',', '')) for own, name in
                 re.findall(r'^\s*([\d,]+) \([^)]*\)\n\t([^\d\s].*)$', text, re.M)}
        want = {r['labels']['symbol']: r['miss_cycles'] for r in rows}
        self.assertGreater(len(shown), 5)
        for name, cycles in shown.items():
            if name in want:
                self.assertEqual(cycles, want[name], name)
        self.assertGreaterEqual(len(set(shown) & set(want)), 5)


if __name__ == '__main__':
    unittest.main()
