# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The manual says what the programs say, and formats without a warning."""
import glob
import os
import re
import shutil
import subprocess
import unittest

BUILD = os.environ.get('IBSCOPE_BUILD', os.path.abspath('build'))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAN = os.path.join(TOP, 'tools', 'man')
PAGES = sorted(glob.glob(os.path.join(MAN, '*.[157]')))


def read(page):
    with open(os.path.join(MAN, page)) as f:
        return f.read()


def said(*words):
    words = words if 'help' in words else (*words, '--help')
    p = subprocess.run([os.path.join(BUILD, words[0]), *words[1:]], capture_output=True, text=True,
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
    """Those that a page describes, and those of ibscope-selection(7) that it names under SELECTION."""
    out = {}
    for m in re.finditer(r'^\.It (?:Fl (\w) , )?Fl -(\S+)(?: Ar (.*))?$', text, re.M):
        out[m[2]] = (m[1], bool(m[3]))
    named = re.search(r'^\.Sh SELECTION\n(.*?)(?=^\.Sh |\Z)', text, re.M | re.S)
    if named and '.Xr ibscope-selection 7 :' in named[1]:
        shared = page_options(read('ibscope-selection.7'))
        for name in re.findall(r'^\.Fl -(\S+)', named[1].split('.Xr ibscope-selection 7 :')[1], re.M):
            out[name] = shared[name]
    return out


def commands():
    return re.findall(r'^  ([a-z0-9]+) ', said('ibscope'), re.M)


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
        self.assertEqual(re.findall(r'^\.It Cm (\w+)$', read('ibscope.1'), re.M), commands())

    def test_terms_of_filters(self):
        terms = re.findall(r'^(\w+)(?: \(([\w,]+)\))?: ', said('ibscope', 'help', 'filter'), re.M)
        self.assertGreater(len(terms), 40)
        page = read('ibscope-selection.7')
        self.assertEqual(re.findall(r'^\.It Va (.*)$', page, re.M),
                         [' , '.join([name] + (alias.split(',') if alias else [])) for name, alias in terms])

    def test_keys_and_columns(self):
        text, page = said('ibscope', 'report'), read('ibscope-report.1')
        want = []
        for title in ('Keys of --by:', 'Columns:'):
            want += re.findall(r'^  (\w+) ', text.split(title)[1].split('\n\n')[0], re.M)
        self.assertEqual(re.findall(r'^\.It Cm (\w+)$', page, re.M), want)

    def test_columns_of_tables(self):
        for command in ('hist', 'c2c', 'annotate'):
            text, page = said('ibscope', command), read(f'ibscope-{command}.1')
            want = re.findall(r'^  (\w+) ', text.split('\nColumns:')[1].split('\n\n')[0], re.M)
            self.assertGreater(len(want), 8)
            rows = re.findall(r'^\.It Cm (\w.*)$', page.split('.Sh COLUMNS')[-1], re.M)
            self.assertEqual([name for row in rows for name in row.split(' , ')], want)

    def test_reasons_without_a_name(self):
        """Each reason in the ledger of symbols has an entry."""
        with open(os.path.join(TOP, 'src', 'data', 'report', 'report.h'), encoding='ascii') as f:
            table = re.search(r'#define CODE_KIND_TABLE\(X\)(.*?[^\\])\n', f.read(), re.S)[1]
        reasons = re.findall(r'"(\w+)"', table)
        self.assertIn('no_symbol', reasons)
        page = read('ibscope-report.1').split('Ql symbols\n')[1]
        self.assertEqual([r for r in reasons if f'.It Ql {r}\n' not in page], [])

    def test_options_that_are_mentioned(self):
        for path in PAGES:
            text = read(path)
            known = set(page_options(text)) | {'raw-samples', 'help', 'version'}
            if path.endswith('ibscope.1'):
                known |= {'source', 'pin-mode', 'control-mode', 'user-socket', 'max-overhead'}
            used = set(re.findall(r'^\.Fl -([a-z][-.a-z]*)', text, re.M))
            self.assertLessEqual(used, known, os.path.basename(path))

    def test_commands_that_are_mentioned(self):
        """In messages and pages: a remedy that does not exist is none."""
        known, n = {*commands(), 'help'}, 0
        for path in [*PAGES, *(p for d in ('src', 'tools') for p in glob.glob(os.path.join(TOP, d, '**/*.[ch]'), recursive=True))]:
            used = set(re.findall(r'(?:`|^\.[QD]l )ibscope ([a-z0-9]+)', read(path), re.M))
            n += len(used)
            self.assertLessEqual(used, known, path)
        self.assertGreater(n, 50)


class Readme(unittest.TestCase):
    """What a newcomer needs in five minutes, and nothing that is not so."""
    def setUp(self):
        with open(os.path.join(TOP, 'README.md')) as f:
            self.text = f.read()

    def test_size(self):
        lines = self.text.splitlines()
        self.assertLessEqual(len(lines), 200)
        self.assertEqual([line for line in lines if len(line) > 100], [])

    def test_links(self):
        links = re.findall(r'\]\(([^)#]+)\)', self.text)
        self.assertGreater(len(links), 2)
        for link in links + re.findall(r'man -l (\S+?)`', self.text):
            self.assertTrue(os.path.exists(os.path.join(TOP, link)), link)
        pages = {os.path.basename(p) for p in PAGES}
        for section, name in re.findall(r'`man (?:(\d) )?(ibscope[-a-z]*)`', self.text):
            self.assertIn(f'{name}.{section or 1}', pages)

    def test_commands_and_options(self):
        lines = re.findall(r'^(?:# |build/)?ibscope (?! ).*', self.text, re.M)
        lines = [line.removeprefix('# ').removeprefix('build/') for line in lines]
        used = {line.split()[1] for line in lines}
        self.assertEqual(set(commands()) - used, set())
        known = set()
        for c in commands():
            known |= set(help_options(said('ibscope', c)))
        for line in lines:
            for option in re.findall(r' --([a-z][-a-z]*)', line.split(' -- ')[0]):
                self.assertIn(option, known, line)
        for option in re.findall(r'`(?:[^`]*?[ ,])?--([a-z][-a-z]*)', self.text):
            self.assertIn(option, known | {'raw-samples'})

    def test_make_targets(self):
        with open(os.path.join(TOP, 'Makefile')) as f:
            targets = set(re.findall(r'^([a-z-]+):', f.read(), re.M))
        for target in re.findall(r'(?:^|`)make ([a-z-]+)', self.text, re.M):
            self.assertIn(target, targets)


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
