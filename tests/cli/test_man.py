# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The manual says what the programs say, and formats without a warning."""
import glob
import os
import re
import shutil
import subprocess
import unittest

BUILD = os.environ.get('IBSCOPE_BUILD', os.path.abspath('build'))
MAN = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), 'tools', 'man')
PAGES = sorted(glob.glob(os.path.join(MAN, '*.[157]')))


def read(page):
    with open(os.path.join(MAN, page)) as f:
        return f.read()


def said(*words):
    p = subprocess.run([os.path.join(BUILD, words[0]), *words[1:], '--help'], capture_output=True, text=True,
                       timeout=30, stdin=subprocess.DEVNULL)
    if p.returncode:
        raise AssertionError(p.stderr)
    return p.stdout


def help_options(text):
    """{long option: (letter, whether it takes an argument)}"""
    out = {}
    for m in re.finditer(r'^ +(?:-(\w), +)?--([a-z][-.a-z0-9]*)(?:[ =](\S+))?', text, re.M):
        arg = bool(m[3]) and (m[3][0].isupper() or '|' in m[3])
        out[m[2]] = (m[1], arg)
    return out


def page_options(text):
    out = {}
    for m in re.finditer(r'^\.It (?:Fl (\w) , )?Fl -(\S+)(?: Ar (.*))?$', text, re.M):
        out[m[2]] = (m[1], bool(m[3]))
    return out


def commands():
    return re.findall(r'^  ([a-z]+) ', said('ibscope'), re.M)


class Options(unittest.TestCase):
    def same(self, words, text):
        want = help_options(said(*words))
        self.assertTrue(want, words)
        self.assertEqual(page_options(text), want, words)

    def test_commands(self):
        self.assertGreater(len(commands()), 6)
        for c in commands():
            if c in ('serve', 'ctl'):
                continue
            self.same(('ibscope', c), read(f'ibscope-{c}.1'))

    def test_serve_and_ctl(self):
        serve, ctl = read('ibscope-serve.1').split('.Sh OPTIONS OF CTL')
        self.same(('ibscope', 'serve'), serve)
        self.same(('ibscope', 'ctl'), ctl)

    def test_exporter(self):
        if not os.path.exists(os.path.join(BUILD, 'ibscope-exporter')):
            self.skipTest('ibscope-exporter is not built')
        self.same(('ibscope-exporter',), read('ibscope-exporter.1'))

    def test_metrics(self):
        exporter = os.path.join(BUILD, 'ibscope-exporter')
        if not os.path.exists(exporter):
            self.skipTest('ibscope-exporter is not built')
        p = subprocess.run([exporter, '--list-metrics'], capture_output=True, text=True, timeout=30)
        want = re.findall(r'^(\w+) +(\w+) ', p.stdout, re.M)
        self.assertGreater(len(want), 40)
        self.assertEqual(sorted(re.findall(r'^\.It Va (\w+) Pq (\w+)$', read('ibscope-metrics.7'), re.M)), sorted(want))

    def test_overview_has_all_commands(self):
        self.assertEqual(re.findall(r'^\.It Cm (\w+)$', read('ibscope.1'), re.M), sorted(commands(), key=[
            'doctor', 'hist', 'record', 'dump', 'report', 'replay', 'serve', 'ctl', 'bench'].index))

    def test_terms_of_filters(self):
        terms = re.findall(r'^(\w+)(?: \(([\w,]+)\))?: ', said('ibscope', 'hist').split('Terms of --filter:')[1], re.M)
        self.assertGreater(len(terms), 40)
        page = read('ibscope-hist.1')
        self.assertEqual(re.findall(r'^\.It Va (.*)$', page, re.M),
                         [' , '.join([name] + (alias.split(',') if alias else [])) for name, alias in terms])

    def test_keys_and_columns(self):
        text, page = said('ibscope', 'report'), read('ibscope-report.1')
        want = []
        for title in ('Keys of --by:', 'Columns:'):
            want += re.findall(r'^  (\w+) ', text.split(title)[1].split('\n\n')[0], re.M)
        self.assertEqual(re.findall(r'^\.It Cm (\w+)$', page, re.M), want)

    def test_options_that_are_mentioned(self):
        for path in PAGES:
            text = read(path)
            known = set(page_options(text)) | {'raw-samples', 'help', 'version'}
            if path.endswith('ibscope.1'):
                known.add('source')
            used = set(re.findall(r'^\.Fl -([a-z][-.a-z]*)', text, re.M))
            self.assertLessEqual(used, known, os.path.basename(path))


class Form(unittest.TestCase):
    @unittest.skipUnless(shutil.which('groff'), 'groff is not here')
    def test_no_warnings(self):
        self.assertGreater(len(PAGES), 8)
        for path in PAGES:
            p = subprocess.run(['groff', '-mdoc', '-ww', '-z', '-Tutf8', path], capture_output=True, text=True,
                               timeout=60)
            self.assertEqual((p.returncode, p.stderr), (0, ''), os.path.basename(path))

    def test_references(self):
        ours = {os.path.basename(p) for p in PAGES} | {'ibscope-exporter.1'}
        for path in PAGES:
            for name, section in re.findall(r'^\.Xr (ibscope\S*) (\d)', read(path), re.M):
                self.assertIn(f'{name}.{section}', ours, os.path.basename(path))


if __name__ == '__main__':
    unittest.main()
