# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`annotate`: a function whose samples are known, against those, objdump and perf."""
import html.parser
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

# without sanitizers, which would put code of their own into the function
MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_annotated')
COLUMNS = ('samples', 'sample_share', 'miss_cycles', 'share', 'mean', 'dram', 'remote', 'hitm', 'walk', 'mispredicted')
TEXT = dict(os.environ, COLUMNS='200', LC_ALL='C.UTF-8')


def kernel_function(name):
    with open('/proc/kallsyms', encoding='utf-8') as f:
        found = re.search(rf'^(\w+) [tT] {name}$', f.read(), re.M)
    return int(found[1], 16) if found else 0


class Annotate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.copy = os.path.join(cls.dir.name, 'copy')
        shutil.copy(MAKE, cls.copy)
        cls.file = cls.make(cls)

    def make(self, *args):
        path = os.path.join(self.dir.name, '-'.join(('a', *args[:1])) + '.ibs')
        subprocess.run([MAKE, path, *args], check=True)
        return path

    def annotate(self, *args, status=0, name='annotated', **kw):
        p = run('annotate', name, '-i', *args, **kw)
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def json(self, *args):
        return json.loads(self.annotate(*args, '--json').stdout)

    def refused(self, *args, says, **kw):
        p = self.annotate(*args, status=1, **kw)
        self.assertEqual(p.stdout, '')
        self.assertIn(says, p.stderr)

    def test_figures(self):
        j = self.json(self.file)
        self.assertEqual(j['attribution'], {'function': 34, 'namesakes': 0, 'elsewhere': 9, 'inexact': 3, 'fetches': 0})
        self.assertEqual(sum(j['attribution'].values()), j['samples']['selected'])
        rows = [r for r in j['instructions'] if r['samples']]
        self.assertEqual([r['samples'] for r in rows], [20, 4, 1, 8, 1])
        self.assertEqual([r['inside'] for r in rows], [False, False, True, False, False])
        self.assertEqual(rows[4]['text'], '.byte 0x06')
        self.assertRegex(rows[0]['text'], r'^movq 0x10\(%')
        self.assertTrue(rows[0]['file'].endswith('tests/unit/make_annotated.c'))
        # 10 x 200 of DRAM, 5 x 400 of the other node's, 5 x 200 of modified data; the last two walked
        want = {'miss_cycles': 5000000, 'share': 1, 'mean': 250, 'dram': .8, 'remote': .4, 'hitm': .2, 'walk': .5,
                'mispredicted': None}
        self.assertEqual({k: rows[0][k] for k in want}, want)
        self.assertEqual([(r['type'], r['field'], r['type_found']) for r in rows[:2]],
                         [('struct shelf', 'next', 'pointer'), ('struct shelf', 'books', 'pointer')])
        self.assertEqual((rows[3]['type'], rows[3]['type_found']), (None, 'no_access'))
        self.assertEqual((rows[1]['mean'], rows[1]['walk'], rows[3]['mispredicted']), (None, 0, .25))
        self.assertEqual({k: j['total'][k] for k in want}, want | {'walk': 10 / 24, 'mispredicted': .25})
        # as report has them for the same samples
        report = json.loads(run('report', '--by', 'symbol', '--json', self.file).stdout)
        same, = (r for r in report['rows'] if r['labels']['symbol'] == 'annotated')
        for c in 'low', 'high':
            self.assertAlmostEqual(j['total'][c], same[c], delta=1)
            self.assertEqual(rows[0][c], j['total'][c])    # all waits are its
            self.assertIsNone(rows[1][c])
        self.assertEqual(sum(r['samples'] for r in j['instructions']), j['total']['samples'])
        self.assertEqual({k: n for k, n in j['types'].items() if n}, {'pointer': 24, 'no_access': 10})
        only = self.json(self.file, '--src', 'remote-dram')
        self.assertEqual((only['total']['samples'], only['total']['mean']), (5, 400))

    def test_symbols_of_all_samples(self):
        """The same samples by function: what share has one, and why the rest has none."""
        want = {'named': 41, 'no_symbol': 0, 'jit_without_map': 0, 'given_up': 0, 'no_time': 0, 'no_file': 2, 'no_address': 3}
        r = json.loads(run('report', self.file, '--by', 'symbol', '--json').stdout)
        self.assertEqual((r['symbols'], r['nodes']), (want, None))
        self.assertEqual(sum(want.values()), r['total']['samples'])
        text = run('report', self.file, '--by', 'symbol').stdout
        self.assertIn('\nsymbols   46 samples = 41 named + 2 no_file + 3 no_address\n', text)
        # stripped: the file is there, its symbols are not
        program = os.path.join(self.dir.name, 'stripped')
        shutil.copy(MAKE, program)
        subprocess.run(['strip', program], check=True)
        file = os.path.join(self.dir.name, 'stripped.ibs')
        subprocess.run([program, file], check=True)
        r = json.loads(run('report', file, '--by', 'symbol', '--json').stdout)
        self.assertEqual(r['symbols'], want | {'named': 0, 'no_symbol': 41})

    def test_instructions(self):
        """They follow each other without gaps, and begin where objdump has them."""
        j = self.json(self.file, '--intel')
        at = j['start']
        for r in j['instructions']:
            if not r['inside']:
                self.assertEqual(r['address'], at)
                at += r['bytes']
        self.assertEqual(at, j['start'] + j['size'])
        p = subprocess.run(['objdump', '-d', '--no-show-raw-insn', f"--start-address={j['start']}", f'--stop-address={at}',
                            MAKE], capture_output=True, text=True, check=True)
        want = {int(m, 16) for m in re.findall(r'^ +([0-9a-f]+):', p.stdout, re.M)}
        self.assertEqual({r['address'] for r in j['instructions'] if not r['inside']}, want)
        self.assertIn(' ptr [', [r['text'] for r in j['instructions'] if r['samples']][0])

    def test_text(self):
        for width in (60, 61, 80, 100, 150, 300):
            text = self.annotate(self.file, env=dict(TEXT, COLUMNS=str(width))).stdout
            table = text.split('\n\n')[1].splitlines()
            self.assertLessEqual(max(map(len, table)), width)
            self.assertEqual([len(line) for line in table[1:] if line.endswith(' ')], [])
            self.assertIn('SAMPLES', table[0])
            figures = table[0].removesuffix('CODE')
            self.assertLessEqual(len(re.split('  +', figures.strip())), 4)
            self.assertLessEqual(len(figures), width - 40)
            self.assertIn(r'__asm__ volatile(".Lload: movq 16(%1), %0\n\t"'[:40], '\n'.join(table))
        self.assertRegex(text, r'(?m)^ +20 +100\.0% +250\.0 +80\.0% +\w+:  movq [^#]+  # struct shelf: next$')
        # all that are known, in an order of their own
        text = self.annotate(self.file, '--columns', ','.join(reversed(COLUMNS)), env=TEXT).stdout
        self.assertRegex(text, r'(?m)^ +20 +58\.8% +5\.00 M +100\.0% +250\.0 +80\.0% +40\.0% +20\.0% +50\.0% +– +\w+:  movq [^#]+  # struct shelf: next$')
        self.assertRegex(text, r'make_annotated\.c:\d+ +__asm__ volatile')
        self.assertIn('types     34 samples = 24 pointer + 10 no_access', text)
        self.assertRegex(self.annotate(self.file, env=dict(TEXT, COLUMNS='80')).stdout,
                         r'(?m)^ +20 .*:  movq [^#]+\n +# struct shelf: next$')
        self.assertRegex(text, r'\.\.\. \d+ instructions without samples')
        whole = self.annotate(self.file, '--all', env=TEXT).stdout
        self.assertNotIn('without samples', whole)
        self.assertGreater(whole.count(':  nop'), 150)

    def test_head(self):
        """Two lines before the code: what the samples are, and how many are in the function; the rest with -v."""
        text = self.annotate(self.file).stdout
        head, code = text.split('\n\n')[:2]
        self.assertEqual(len(head.splitlines()), 2, head)
        self.assertIn(': 46 samples, 34 in annotated; lost: ', head.splitlines()[0])
        self.assertIn('SIMULATED', head.splitlines()[1])
        self.assertTrue(code.splitlines()[0].endswith('CODE'), code)
        self.assertRegex(self.annotate(self.file, '--src', 'dram').stdout, r': 46 samples, \d+ selected, 10 in annotated;')
        head = self.annotate(self.file, '-v').stdout.split('\n\n')[0]
        self.assertIn('\nfound     34 samples of ops in it + 9 elsewhere + 3 without an exact address', head)
        self.assertIn('\nfunction  annotated of ', head)

    def test_stores(self):
        """A row of stores has no latency; once, the text says why."""
        hint = '\nstores have no latency (–): IBS measures that of loads only\n'
        self.assertNotIn('stores have', self.annotate(self.file, env=TEXT).stdout)    # "lock incl" also loads
        file = os.path.join(self.dir.name, 'lines.ibs')
        subprocess.run([os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_lines'), file, 'known'], check=True)
        self.assertEqual(self.annotate(file, name='count_requests', env=TEXT).stdout.count(hint), 1)
        self.assertNotIn('stores have', self.annotate(file, name='look_up', env=TEXT).stdout)

    def test_hottest(self):
        """Without a function it is the one with most miss cycles, and a recording is known as such."""
        want = self.json(self.file)
        for args in (('-i', self.file), (self.file,)):
            p = run('annotate', '--json', *args)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual(json.loads(p.stdout) | {'options': None}, want | {'options': None})
        os.symlink(self.file, os.path.join(self.dir.name, 'ibscope.data'))
        p = run('annotate', '--json', cwd=self.dir.name)
        self.assertEqual(json.loads(p.stdout)['function'], 'annotated')
        # a function may have the name of a file that is not a recording
        with open(os.path.join(self.dir.name, 'annotated'), 'w'):
            pass
        p = run('annotate', '--json', 'annotated', cwd=self.dir.name)
        self.assertEqual(json.loads(p.stdout)['function'], 'annotated')
        p = run('annotate', '-i', self.make('jit'))
        self.assertEqual(p.returncode, 1)
        self.assertIn('no sample has an exact address in a known function', p.stderr)

    def test_names(self):
        path = self.make('copy', self.copy)
        j = self.json(path)
        self.assertEqual(j['object'], MAKE)
        self.assertEqual(j['others'], [{'object': self.copy, 'mangled': None, 'start': j['start'], 'samples': 2}])
        for name in ('copy', self.copy):
            j = self.json(path, '--object', name)
            self.assertEqual((j['object'], j['total']['samples']), (self.copy, 2))
            self.assertEqual(j['attribution'] | {'inexact': 3},
                             {'function': 2, 'namesakes': 34, 'elsewhere': 7, 'inexact': 3, 'fetches': 0})
        self.assertIn(f'also      annotated of {self.copy}', self.annotate(path).stdout)
        self.refused(path, '--object', 'no', says=f"--object: no sample of 'annotated' is in 'no'; there are some in {MAKE}")
        self.refused(path, name='annotate', says="no sample is in a function 'annotate'; did you mean 'annotated'?")
        self.refused(path, '--min-lat', '60000', says='no sample is selected')
        p = self.annotate('/nonexistent', status=1)
        self.assertEqual(p.stderr, 'ibscope: error: cannot open /nonexistent: No such file or directory\n')

    def test_what_cannot_be_resolved(self):
        """Never a name or code of something else."""
        self.refused(self.make('rebuilt', self.copy), says=f'no symbols for {self.copy}: its build-id ')
        self.refused(self.make('jit'), says="no sample is in a function 'annotated'; ")
        self.refused(self.make('other', 'ffffffff81000010'), says='no symbols for the kernel: ')
        gone = self.make('copy', os.path.join(self.dir.name, 'gone'))
        self.assertEqual(self.json(gone)['others'], [])
        stripped = os.path.join(self.dir.name, 'stripped')
        subprocess.run(['strip', '-o', stripped, MAKE], check=True)
        path = self.make('copy', stripped)
        self.assertEqual(self.json(path)['attribution']['elsewhere'], 9)
        debug = os.path.join(self.dir.name, 'debug')
        subprocess.run(['objcopy', '--only-keep-debug', MAKE, debug], check=True)
        self.refused(self.make('copy', debug), '--object', 'debug', says="--object: no sample of 'annotated' is in 'debug'")
        old = os.stat(self.copy)
        os.utime(self.copy, (1e9, 1e9))
        p = self.annotate(self.make('copy', self.copy), '--object', 'copy')
        os.utime(self.copy, (old.st_atime, old.st_mtime))
        self.assertIn('changed after the program was built', p.stderr)
        self.assertNotIn('__asm__', p.stdout)

    def test_sizes_of_hostile_files(self):
        """What a symbol says of its size is not believed."""
        symbols = subprocess.run(['readelf', '-sW', MAKE], capture_output=True, text=True, check=True).stdout
        number = int(re.search(r'(?m)^ +(\d+): \w+ +\d+ FUNC .* annotated$', symbols.split("'.symtab'")[1])[1])
        sections = subprocess.run(['readelf', '-SW', MAKE], capture_output=True, text=True, check=True).stdout
        at = int(re.search(r' \.symtab +SYMTAB +\w+ (\w+)', sections)[1], 16) + number * 24 + 16
        path = os.path.join(self.dir.name, 'hostile')
        for size, says in ((1 << 40, "'annotated' of {} has 1099511627776 bytes of code; at most 1048576 can be annotated"),
                           (1 << 20, "{}: the file has no code of 'annotated'")):
            shutil.copy(MAKE, path)
            with open(path, 'r+b') as f:
                f.seek(at)
                f.write(struct.pack('<Q', size))
            self.refused(self.make('copy', path), '--object', 'hostile', says=says.format(path))

    def test_kernel(self):
        addr = kernel_function('vfs_read')
        if not addr:
            self.skipTest('addresses of the kernel are hidden here')
        path = self.make('kernel', f'{addr:x}')
        if not os.access('/proc/kcore', os.R_OK):
            self.refused(path, name='vfs_read', says="cannot read the kernel's code from /proc/kcore: ")
            return
        p = run('annotate', 'vfs_read', '-i', path, '--json')
        self.assertEqual(p.returncode, 0, p.stderr)
        j = json.loads(p.stdout)
        self.assertEqual((j['object'], j['start']), ('[kernel]', (addr + 2**63) % 2**64 - 2**63))
        self.assertEqual(j['instructions'][0]['samples'], 4)
        self.assertIn('ret', ' '.join(r['text'] for r in j['instructions']) + ' ')

    def test_html(self):
        path = os.path.join(self.dir.name, 'a.html')
        self.assertEqual(self.annotate(self.file, '--html', path).stdout, '')
        with open(path, encoding='utf-8') as f:
            text = f.read()
        tags = []
        parser = html.parser.HTMLParser()
        parser.handle_starttag = lambda tag, attrs: tags.append((tag, dict(attrs)))
        parser.feed(text)
        self.assertEqual([t for t in tags if t[0] == 'script' or 'src' in t[1] or 'style' in t[1]], [])
        self.assertIn('SIMULATED', text)
        self.assertEqual(sum(t[0] == 'rect' for t in tags), 6)    # a row with samples, and the total
        for said in ('5,000,000', '# struct shelf: next', 'movq 0x10(%', '34 samples of ops in it', '__asm__ volatile(&quot;.Lload'):
            self.assertIn(said, text)
        self.assertEqual(text.count(':  '), 0)

    def test_usage(self):
        for args, says in ((('a', 'b'), "unexpected argument 'b': give one FUNCTION"),
                           (('a', '--columns', 'p99'), "--columns"),
                           (('a', '--json', '--html', 'x'), '--json and --html exclude each other')):
            p = run('annotate', *args)
            self.assertEqual((p.returncode, p.stdout), (2, ''))
            self.assertIn(says, p.stderr)

    def test_function_and_file(self):
        """The last argument is the recording, if it is one; what could be either is an error that says so."""
        want = run('annotate', '-i', self.file, 'annotated')
        self.assertEqual(want.returncode, 0, want.stderr)
        p = run('annotate', 'annotated', self.file)
        self.assertEqual((p.returncode, p.stdout), (0, want.stdout), p.stderr)
        with open(self.file, 'rb') as f:
            p = subprocess.run([ibscope.IBSCOPE, 'annotate', 'annotated', '-'], stdin=f, capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout.splitlines()[1:]), (0, want.stdout.splitlines()[1:]), p.stderr)
        options = json.loads(run('annotate', '--json', 'annotated', self.file, '--op', 'load').stdout)
        self.assertEqual(options, json.loads(run('annotate', '--json', 'annotated', '-i', self.file, '--op', 'load').stdout))
        for args, says in (((self.file, 'annotated'), "unexpected argument 'annotated': give the FUNCTION first, and then the recording"),
                           (('annotated', '/no/such'), "unexpected argument '/no/such': give one FUNCTION, and then a recording, which this is not"),
                           ((self.file, self.file), f"'{self.file}' and '{self.file}' are both files: if the first is a FUNCTION, give the recording with -i"),
                           (('a', 'b', 'c'), "unexpected argument 'c': give one FUNCTION, and one recording after it"),
                           (('-i', self.file, 'annotated', 'b'), "unexpected argument 'b': give one FUNCTION, as the recording was already given with -i")):
            with self.subTest(args=args):
                p = run('annotate', *args)
                self.assertEqual((p.returncode, p.stdout), (2, ''))
                self.assertIn(says, p.stderr)

    def test_no_recording(self):
        """A file that is none is not searched for as a function."""
        path = os.path.join(self.dir.name, 'junk.data')
        with open(path, 'w', encoding='ascii') as f:
            f.write('junk')
        p = run('annotate', cwd='/')
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('no file ibscope.data here: `ibscope record` writes it', p.stderr)
        for cwd, arg in (self.dir.name, 'junk.data'), ('/', path):
            p = run('annotate', arg, cwd=cwd)
            self.assertEqual((p.returncode, p.stdout), (1, ''))
            self.assertIn(f'{arg}: unknown format', p.stderr)

    def test_perf(self):
        """Shares of samples are those of perf annotate, which adds samples within an instruction to it."""
        if not shutil.which('perf'):
            self.skipTest('no perf')
        path = os.path.join(self.dir.name, 'perf.data')
        p = run('export', '-i', self.file, '--perf-data', path)
        self.assertEqual(p.returncode, 0, p.stderr)
        p = subprocess.run(['perf', 'annotate', '--stdio', '-i', path, '-s', 'annotated'], capture_output=True, text=True)
        theirs = {int(m[1], 16): float(m[0]) for m in re.findall(r'^ +([0-9.]+) +: +([0-9a-f]+):', p.stdout, re.M)}
        self.assertGreater(len(theirs), 100, p.stderr)
        ours, last = {}, None
        for r in self.json(path)['instructions']:
            last = last if r['inside'] else r['address']
            ours[last] = ours.get(last, 0) + 100 * r['sample_share']
        self.assertEqual({a: round(v, 2) for a, v in ours.items()}, theirs)


if __name__ == '__main__':
    unittest.main()
