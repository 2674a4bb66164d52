# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`report --by mapping,variable,offset`: what a program read of its own memory."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_places')
KALLSYMS = """ffffffff81000000 T _text
ffffffff82000000 D __start_section
ffffffff82000010 d jiffies_like
ffffffff82000020 d next_one
ffffffff82000100 B _end
"""
VARIABLES = {('places_data', '8'): 1, ('places_bss', '11208'): 2, ('places_const', '0'): 3, ('places_static', '0'): 4}
# with maps of data, without a list of the kernel's symbols
KINDS = {'variable': 10, 'heap': 5, 'stack': 13, 'anonymous': 8, 'shared': 9, 'file': 10, 'special': 11, 'no_symbol': 0,
         'no_object': 0, 'kernel': 27, 'unmapped': 12, 'no_address': 15}


class Places(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.path = lambda self, name: os.path.join(cls.dir.name, name)

    def make(self, program, *args):
        file = self.path('a.ibs')
        subprocess.run([program, file, *args], check=True)
        return file

    def report(self, *args, kinds, warns=None):
        p = run('report', *args, '--by', 'variable,offset,mapping', '--json')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(bool(warns), bool(p.stderr), p.stderr)
        self.assertIn(warns or '', p.stderr)
        r = json.loads(p.stdout)
        self.assertEqual(r['data'], kinds)
        self.assertEqual(sum(r['data'].values()), r['total']['samples'])
        return {(row['labels']['variable'], row['labels']['offset']): row['samples'] for row in r['rows']}

    def test_all(self):
        kallsyms = self.path('kallsyms')
        with open(kallsyms, 'w', encoding='ascii') as f:
            f.write(KALLSYMS)
        file = self.make(MAKE)
        rows = self.report(file, '--kallsyms', kallsyms, kinds=KINDS | {'variable': 23, 'kernel': 14})
        want = VARIABLES | {('[heap]', None): 5, ('[stack]', None): 13, ('[anon]', None): 8,
                            ('[/memfd:places (deleted)]', None): 9, (f'[{file}]', '4100'): 10, ('[vdso]', None): 11,
                            ('[unmapped]', None): 12, ('jiffies_like', '8'): 13, ('[kernel]', None): 14, (None, None): 15}
        self.assertEqual(rows, want)
        # the kernel does not name a heap that grew once: it is known by its place, and no other memory is
        small = self.make(MAKE, 'small')
        self.assertNotIn('[heap]', run('dump', '--events', small).stdout)
        want[f'[{small}]', '4100'] = want.pop((f'[{file}]', '4100'))
        self.assertEqual(self.report(small, '--kallsyms', kallsyms, kinds=KINDS | {'variable': 23, 'kernel': 14}), want)
        file = self.make(MAKE)
        text = run('report', file, '--by', 'mapping', '--kallsyms', kallsyms).stdout
        self.assertIn('data      120 samples = 23 variable + 5 heap + 13 stack + ', text)
        self.assertEqual(run('report', file, '--by', 'mapping', '--csv').stdout.count('make_places,'), 1)
        self.assertNotIn('data   ', run('report', file).stdout)

    def test_marks_and_the_last_symbol_are_no_variables(self):
        file, kallsyms = self.make(MAKE), self.path('kallsyms2')
        for text in (KALLSYMS.replace('jiffies_like', '__stop_section'), KALLSYMS.split('ffffffff82000020')[0],
                     KALLSYMS.replace('d jiffies_like', 't function')):
            with open(kallsyms, 'w', encoding='ascii') as f:
                f.write(text)
            self.report(file, '--kallsyms', kallsyms, kinds=KINDS)

    def test_maps_of_code_only(self):
        """As of perf without -d: variables are found from the code's map, and the stack from its place."""
        kallsyms = self.path('kallsyms')
        with open(kallsyms, 'w', encoding='ascii') as f:
            f.write(KALLSYMS.split('\n', maxsplit=1)[0])
        gone = 5 + 8 + 9 + 10 + 12
        kinds = dict.fromkeys(KINDS, 0) | {'variable': 10, 'stack': 13, 'special': 11, 'kernel': 27, 'unmapped': gone,
                                           'no_address': 15}
        rows = self.report(self.make(MAKE, 'code'), '--kallsyms', kallsyms, kinds=kinds, warns='perf record -d')
        self.assertEqual({k: n for k, n in rows.items() if k in VARIABLES}, VARIABLES)

    def test_shared_lines(self):
        """c2c names the variables of a line, the fields of its slots, and both in its advice."""
        file = self.make(MAKE, 'sharing')
        p = run('c2c', file, '--json')
        r = json.loads(p.stdout)
        self.assertEqual(p.stderr, '')
        self.assertEqual(r['data'], dict.fromkeys(KINDS, 0) | {'variable': 240, 'heap': 80})
        got = {tuple(sorted(v['name'] for v in line['variables'])):
               ({s['offset']: s['variables'] for s in line['slots'] if s['variables']}, line) for line in r['lines']}

        def field(name, samples=40):
            return [{'name': name, 'mangled': None, 'samples': samples}]
        self.assertEqual({k: v[0] for k, v in got.items()}, {
            ('places_shared',): {0: field('places_shared'), 8: field('places_shared+8')},
            ('places_a', 'places_b'): {0: field('places_a'), 16: field('places_b')},
            ('places_lock',): {24: field('places_lock+24', 80)},
            ('[heap]',): {0: field('[heap]'), 8: field('[heap]')}})
        for key, says in ((('places_shared',), '`places_shared.errors` (offset 8, written by access_memory at make_places.c:'),
                          (('places_a', 'places_b'), '`places_a` (offset 0, written by access_memory at '),
                          (('places_lock',), 'write `places_lock[].errors` less often (offset 24, written by access_memory at '),
                          (('[heap]',), 'offset 0 (written by access_memory at ')):
            self.assertIn(says, got[key][1]['advice'])
        line = got['places_lock',][1]['line']
        for name in 'places_lock', 'places_b', '[heap]':    # the only lines with them
            p = run('c2c', file, '--line', name, '--json')
            self.assertIn(name, [v['name'] for v in json.loads(p.stdout)['line']['variables']])
        text = run('c2c', file, '--line', line).stdout
        self.assertRegex(text, r'(?m)^24 +8 +store +places_lock\+24 +access_memory ')
        self.assertIn('data      80 samples = 80 variable', text)
        self.assertIn('places_a;places_b', run('c2c', file, '--csv').stdout)

    def test_page_walks(self):
        """What page walks cost, by mapping and size of page: the price of small pages."""
        p = run('report', self.make(MAKE, 'walks'), '--tlb', 'walk', '--metric', 'tlb_refill_lat', '--by',
                'mapping,page_size', '--json')
        rows = [(os.path.basename(r['labels']['mapping']), r['labels']['page_size'], r['samples'], r['miss_cycles'])
                for r in json.loads(p.stdout)['rows']]
        self.assertEqual(rows, [('[anon]', '4096', 10, 1000000), ('make_places', '2097152', 10, 400000)])
        # where that memory is, and whose
        file = self.path('a.ibs')
        p = run('report', file, '--tlb', 'walk', '--by', 'mapping,range,page_size', '--json')
        events = map(json.loads, run('dump', '--events', '--json', file).stdout.splitlines())
        maps = {(int(e['start'], 16), int(e['start'], 16) + int(e['len'], 16)) for e in events if 'len' in e}
        for r in json.loads(p.stdout)['rows']:
            self.assertIn(tuple(int(a, 16) for a in r['labels']['range'].split('-')), maps)
            self.assertTrue(r['labels']['space'].isdigit())

    # by the map of make_places.c, of thread n: named after it, and not
    STACKS = {1: {1: 4, 6: 4}, 2: {2: 3, 6: 16}, 3: {3: 3, 6: 32}, 5: {5: 7}}
    NOT_STACKS = {0: 1, 1: 9, 2: 1, 3: 1, 4: 2, 5: 5 + 6, 6: 3 + 64}

    def stacks(self, file, stdin=subprocess.DEVNULL):
        """Samples by the owner of the stack, None: it has none, and the number of the thread."""
        p = subprocess.run([ibscope.IBSCOPE, 'report', file, '--by', 'mapping,tid', '--json'], stdin=stdin,
                           capture_output=True, text=True, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        r = json.loads(p.stdout)
        first, got = min(int(row['labels']['tid']) for row in r['rows']), {}
        for row in r['rows']:
            mapping, tid = row['labels']['mapping'], int(row['labels']['tid']) - first
            owner = int(mapping[len('[stack:'):-1]) - first if mapping.startswith('[stack:') else None
            self.assertIn(mapping, (f'[stack:{first + (owner or 0)}]', '[anon]'))
            got.setdefault(owner, {})[tid] = row['samples']
        n = {'stack' if owner else 'anonymous': 0 for owner in got}
        for owner, threads in got.items():
            n['stack' if owner else 'anonymous'] += sum(threads.values())
        self.assertEqual({k: v for k, v in r['data'].items() if v}, n)
        return got

    def test_stacks(self):
        """What threads access through the stack pointer proves whose stack it is, for as long as it does so."""
        want = self.STACKS | {None: self.NOT_STACKS}
        for order in 'stacks', 'stacks-back':
            file = self.make(MAKE, order)
            self.assertEqual(self.stacks(file), want)
            with open(file, 'rb') as f, subprocess.Popen(['cat'], stdin=f, stdout=subprocess.PIPE) as cat:
                self.assertEqual(self.stacks('-', stdin=cat.stdout), want)
            perf = self.path('perf.data')
            p = run('export', '--perf-data', perf, file)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual(self.stacks(perf), want)
        # samples that are not selected prove it too
        p = run('report', file, '--filter', 'op == load', '--by', 'mapping', '--json')
        self.assertEqual(sum(r['samples'] for r in json.loads(p.stdout)['rows'] if 'stack' in r['labels']['mapping']),
                         2 + 4 + 1 + 16 + 32)
        rows = json.loads(run('report', file, '--by', 'variable', '--json').stdout)['rows']
        self.assertEqual({r['labels']['variable']: r['samples'] for r in rows},
                         {'[stack]': sum(sum(t.values()) for t in self.STACKS.values()),
                          '[anon]': sum(self.NOT_STACKS.values())})
        lines = json.loads(run('c2c', file, '--json').stdout)['lines']
        self.assertEqual(sorted(v['name'][:7] for line in lines for v in line['variables']).count('[stack:'), 5)

    def test_stacks_without_code(self):
        """A program that is gone, or of Go, whose stacks lie in its heap, proves nothing."""
        program = self.path('program')
        shutil.copy(MAKE, program)
        subprocess.run(['strip', program], check=True)
        threads = {n: sum(t.get(n, 0) for t in (*self.STACKS.values(), self.NOT_STACKS)) for n in range(7)}
        file = self.make(program, 'stacks')
        self.assertEqual(self.stacks(file), self.STACKS | {None: self.NOT_STACKS})
        os.remove(program)
        self.assertEqual(self.stacks(file), {None: threads})
        subprocess.run(['objcopy', '--add-section', f'.go.buildinfo={__file__}', MAKE, program], check=True)
        self.assertEqual(self.stacks(self.make(program, 'stacks')), {None: threads})

    def test_no_symbols(self):
        """Stripped; and gone, where only maps that can be written are kept."""
        program = self.path('stripped')
        shutil.copy(MAKE, program)
        subprocess.run(['strip', program], check=True)
        kallsyms = self.path('kallsyms')
        with open(kallsyms, 'w', encoding='ascii') as f:
            f.write(KALLSYMS)
        file = self.make(program)
        kinds = KINDS | {'variable': 13, 'kernel': 14, 'no_symbol': 10}
        rows = self.report(file, '--kallsyms', kallsyms, kinds=kinds)
        self.assertEqual(rows[f'[{program}]', None], 10)
        os.remove(program)
        kinds |= {'no_symbol': 0, 'no_object': 5, 'anonymous': 10, 'unmapped': 15}
        self.report(file, '--kallsyms', kallsyms, kinds=kinds, warns=program)


if __name__ == '__main__':
    unittest.main()
