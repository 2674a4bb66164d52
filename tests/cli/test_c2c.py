# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`c2c`: lines whose truth is known, and random ones against an oracle over what `dump` prints."""
import collections
import csv
import io
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
from ibscope import can_bpf, run  # noqa: E402
from line_oracle import Line, verdict  # noqa: E402

OK, WHY = can_bpf()

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_lines')
PERIOD = 1000
PAGE = 4096
CACHES = ('l3', 'local-cache', 'near-cache', 'remote-cache')

USAGE = [
    (['FILE', 'FILE'], 'one recording'),
    (['FILE', '--line', '-1'], 'hexadecimal'),
    (['FILE', '--line', '0xmain'], "'0xmain': must be hexadecimal, as in 0x7f0012345640, or the name of a variable"),
    (['FILE', '--line', ''], 'hexadecimal'),
    (['FILE', '--sort', 'verdict'], 'must be one of miss_cycles'),
    (['FILE', '--columns', 'stores,hits'], "'hits'"),
    (['FILE', '--top', '0'], '--top'),
    (['FILE', '--csv', '--json'], 'exclude each other'),
    (['FILE', '--min-lat', '100'], 'drops all stores'),
    (['FILE', '--max-lat', '100'], 'drops all stores'),
    (['FILE', '--src', 'dram'], 'l1, l2 and unknown'),
    (['FILE', '--src', 'l1,l2,unknown,dram'], 'near-cache'),
    (['FILE', '--op', 'load'], 'store'),
    (['FILE', '--filter', 'pid == 1 && mem_lvl == l3'], "'mem_lvl'"),
    (['FILE', '--tlb', 'walk'], 'may drop'),
    (['--live', '--line', '0xmain'], "'0xmain'"),
    (['--live', '--csv', '--json'], 'exclude each other'),
    (['--live', '--min-lat', '100'], 'drops all stores'),
    (['--live', '--src', 'dram'], 'l1, l2 and unknown'),
    (['--live', '-e', 'ibs_op/ldlat=128/'], 'ldlat drops all stores'),
    (['--live', '-e', 'ibs_op/cnt_ctl=1,l3missonly=1/'], 'same complex'),
    (['--live', '-e', 'ibs_fetch//'], 'no data addresses'),
    (['--live', 'FILE'], 'unexpected argument'),
    (['--live', '--feed', 'stores,dram'], "invalid list 'stores,dram': sharing cannot be judged without stores and caches"),
    (['--live', '--feed', 'stores,caches,ram'], "'ram'"),
    (['--live', '--feed', ''], '--feed'),
    (['FILE', '--feed', 'stores,caches'], 'needs --live'),
]
FAILED = [
    (['/no/such/file'], '/no/such/file'),
    (['/dev/null'], 'empty'),
    (['FILE', '--line', 'dead00'], 'no sample is in the line of 0xdead00'),
    (['FILE', '--line', 'main'], "no sample is in a line with a variable or field 'main'; `ibscope c2c --all` lists"),
    (['FILE', '--line', '[unmapped]'], "'[unmapped]' is in 15 lines: 0x100000000, "),
    (['FILE', '--cgroup', '/not/there'], '/not/there'),
]
# what a file says it was recorded with; None: not refused
RECORDED = [
    ('ibs_op/cnt_ctl=1,ldlat=128/', 'ldlat drops all stores'),
    ('ibs_op/l3missonly/', 'same complex'),
    ('ibs_op/strmst=1,cnt_ctl=1/', 'streaming'),
    ('ibs_op/cnt_ctl=1,ldlat=0,l3missonly=0/', None),
    ('--min-lat 100', 'drops all stores'),
    ('-p 7 --src l3,dram', 'l1, l2 and unknown'),
    ('--src unknown,l1,l2,l3,near-cache,remote-cache', None),
    ('--op load,prefetch', '--op'),
    ("--filter 'pid == 3 && data_src == l3'", "'data_src'"),
    ("--filter 'user && !(addr < 0x1000) && cgroup == /mem_op'", None),
    ('-p 100 --comm web --cgroup /a', None),
]


def number(text):
    return int(text, 16) if text.startswith('0x') else int(text)


def accesses(path, *options):
    """Of each load and store of a recording, what `dump` prints."""
    out = []
    for order, r in enumerate(csv.DictReader(io.StringIO(run('dump', '--csv', path, *options).stdout))):
        ld, st = r['ld_op'] == '1', r['st_op'] == '1'
        if not ld and not st:
            continue
        a = {'time': int(r['time_ns']), 'order': order, 'load': ld, 'store': st, 'prefetch': r['sw_pf'] == '1',
             'cpu': int(r['cpu']), 'tgid': int(r['pid']), 'tid': int(r['tid']),
             'addr': number(r['dc_lin_ad'] or '0'), 'phys': number(r['dc_phys_ad'] or '0'),
             'width': int(r['mem_width'] or 0) or 1, 'lat': r['dc_miss_lat'], 'src': r['src']}
        a['space'] = 'kernel' if a['addr'] >> 63 else r['pid']
        state = r['cache_hit_st']
        coarse = r['src'] == 'local-cache'
        if a['src'] == 'unknown':
            a['from'] = 'unknown'
        elif a['src'] not in CACHES:
            a['from'] = 'other'
        elif state == '':
            a['from'] = 'other' if a['src'] == 'l3' else 'transfers'
        elif state == '1':
            a['from'] = 'owned'
        elif a['src'] == 'l3' or coarse:
            a['from'] = 'hitm_ccx'
        elif a['src'] == 'near-cache':
            a['from'] = 'hitm_near'
        else:  # make_lines puts RmtSocket into CompToRetCtr
            zen6 = r['strm_st'] != '' or STRM_ST
            a['from'] = 'hitm_socket' if zen6 and r['comp_to_ret_ctr'] == '1' else 'hitm_remote'
        out.append(a)
    return out


STRM_ST = False  # the processor has RmtSocket; loads do not show it


def moved_pages(samples):
    """{page: page that it is shown as}, joined where all uses of one end before those of the next."""
    use, seen = {}, {}
    for a in samples:
        if not a['phys']:
            continue
        page = a['phys'] // PAGE
        first, last = use.get(page, (a['time'], a['time']))
        use[page] = min(first, a['time']), max(last, a['time'])
        if a['addr']:
            key = a['space'], a['addr'] // PAGE
            times = seen.setdefault(key, {})
            times[page] = min(times.get(page, a['time']), a['time'])
    moves = set()
    for times in seen.values():
        order = sorted((t, p) for p, t in times.items())
        moves |= {(use[q][0], p, q) for (_, p), (_, q) in zip(order, order[1:])}
    group = {p: [p] for p in use}  # of each page, all that are joined
    n = 0
    for _, p, q in sorted(moves):
        a, b = group[p], group[q]
        if a is not b and max(use[k][1] for k in a) < min(use[k][0] for k in b):
            n += 1
            both = a + b
            for k in both:
                group[k] = both
    return {p: max(group[p], key=lambda k: use[k][1]) for p in use}, n


def lines_of(samples):
    pages, moved = moved_pages(samples)
    out = collections.defaultdict(Line)
    for a in samples:
        if a['phys']:
            key = 'physical', pages[a['phys'] // PAGE] * PAGE + a['phys'] % PAGE // 64 * 64, ''
        elif a['addr']:
            key = 'virtual', a['addr'] // 64 * 64, a['space']
        else:
            key = '', 0, ''
        line = out[key]
        line.accesses.append(a)
        line.n['samples'] += 1
        line.n['load'] += a['load']
        line.n['store'] += a['store']
        line.n[a['from']] += 1
        if a['lat'] != '':
            cycles = int(a['lat']) * PERIOD
            line.n['valid'] += 1
            line.cycles += cycles
            line.sum += int(a['lat'])
            line.known += cycles * (a['from'] != 'unknown')
            line.hitm += cycles * a['from'].startswith('hitm')
    return out, moved


class C2c(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = cls.make('known')

    @classmethod
    def make(cls, *args):
        path = os.path.join(cls.dir.name, 'lines.' + '.'.join(args).replace('/', '_'))
        subprocess.run([MAKE, path, *args], check=True)
        return path

    def c2c(self, *args, status=0, **kw):
        p = run('c2c', *args, **kw)
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def rows(self, path, *args):
        p = self.c2c(path, '--csv', *args)
        return list(csv.DictReader(io.StringIO(p.stdout)))

    def test_known(self):
        rows = {r['line']: r for r in self.rows(self.file)}
        told = {}
        for n in range(11):
            r = rows[hex(0x100000000 + 64 * n)]
            told[n] = r['verdict'], r['slots'], r['writers'], r['readers']
        false, true, both = 'false sharing', 'true sharing', 'true and false sharing'
        two = 'count_errors;count_requests'
        self.assertEqual(told, {
            0: (false, 'ww......', two, two),
            1: (true, '..W.....', 'take_lock', 'take_lock'),
            2: ('read-only', 'rrrrrrrr', '', 'look_up'),
            **{n: ('private', 'w.......', 'count_requests', 'count_requests') for n in range(3, 7)},
            7: (both, 'W...r...', 'take_lock', 'take_lock;look_up'),
            8: ('private', 'w.......', 'count_requests', 'count_requests'),
            9: ('shared', 'ww......', 'count_requests', 'count_requests'),
            10: (false, 'ww......', two, two),
        })
        moved = rows['0x110001000']
        self.assertEqual((moved['verdict'], moved['samples']), (false, '50'))
        self.assertNotIn('0x100001000', rows)
        self.assertEqual(rows['0x110002000']['threads'], '1')  # copied on write, not moved
        virtual = rows['0x7f0000003000']
        self.assertEqual((virtual['address'], virtual['pid'], virtual['verdict']), ('virtual', '100', false))
        self.assertEqual((rows['']['address'], rows['']['verdict'], rows['']['samples']), ('', 'unknown', '3'))
        self.assertEqual({r['source'] for r in rows.values()}, {'sim'})
        ledgers = 'data      1,403 samples = 0 variable + 1,400 unmapped + 3 no_address', 'symbols   1,403 samples = 1,403 named'
        for args in (), ('--csv',):
            p = self.c2c(self.file, *args)
            for ledger in ledgers:
                self.assertIn(f'{ledger}\n', p.stderr if args else p.stdout)
        first = rows['0x100000000']
        self.assertEqual([first[c] for c in ('hitm_ccx', 'hitm_near', 'hitm_remote', 'hitm_socket', 'owned', 'stores',
                                             'miss_cycles', 'hitm', 'containers', 'cpus', 'threads')],
                         ['0', '100', '0', '', '0', '100', '20000000', '1', 'web', '2', '2'])
        self.assertEqual(rows['0x100000280']['containers'], 'web;db')

    def test_no_hit_state(self):
        rows = {r['line']: r for r in self.rows(self.make('known', 'zen3'))}
        first = rows['0x100000000']
        self.assertEqual((first['verdict'], first['likely'], first['hitm'], first['transfers']),
                         ('false sharing', '1', '', '100'))
        text = self.c2c(self.make('known', 'zen3')).stdout
        self.assertRegex(text, r'0x100000000 +false\? ')

    def test_digits(self):
        text = self.c2c(self.make('many', '20000')).stdout
        self.assertRegex(text, r'\A1,\d{3} falsely shared lines, ')
        self.assertRegex(text, r'\nother \(\d\d,\d{3}\) ')

    def test_text(self):
        for width in (60, 70, 80, 100, 150):
            text = self.c2c(self.file, env=dict(os.environ, COLUMNS=str(width), LC_ALL='C.UTF-8')).stdout
            table = text[text.index('\nPHYS LINE'):text.index('\n\n95% intervals of cycles: ')]
            self.assertLessEqual(max(map(len, table.splitlines())), width, text)
            # names and addresses give way to the verdict and HITM
            self.assertRegex(table, r'\nPHYS LINE +VERDICT .* MISS CYCLES +HITM')
            self.assertRegex(table, r'\n0x1000001c0 +both .* 30.0 M +100.0%')
            self.assertRegex(table, r'\n0x100000080 +read-only ')
            self.assertEqual('\nslots     of 8 bytes' in text, ' SLOTS ' in table)
            advice = text[text.index('\n0x1000001c0: '):]
            self.assertLessEqual(max(map(len, advice.splitlines())), width, text)
            self.assertIn('SIMULATED', text)
            self.assertIn('1 page moved', text)
        self.assertIn('HITM NEAR', text)
        advice = re.sub(r' at make_lines\.c:\d+', ' at LINE', re.sub(r'\n  ', ' ', advice))
        self.assertIn('0x100000000: move offset 0 (written by count_requests at LINE) and offset 8 '
                      '(written by count_errors at LINE) to lines', advice)
        self.assertIn('0x100000040: write offset 16 less often (written by take_lock at LINE)', advice)
        self.assertIn('0x1000001c0: move offset 0 (written by take_lock at LINE) and offset 32 (read by look_up at LINE)', advice)
        top = self.c2c(self.file, '--top', '2', '--sort', 'stores', '--columns', 'stores').stdout
        self.assertRegex(top, r'\nother \(\d+\) ')

    def test_both_addresses(self):
        """A line of report, which has virtual addresses, is found in c2c, which has physical ones, and the other way round."""
        def report(*args):
            r = json.loads(run('report', '--by', 'line', '--json', *args, self.file).stdout)
            return {row['labels']['line']: row['samples'] for row in r['rows'] if row['labels']['line']}
        self.assertRegex(run('report', '--by', 'line,page', self.file).stdout, r'(?m)^VIRT LINE +VIRT PAGE ')
        self.assertRegex(run('report', '--by', 'line,page', '--phys', self.file).stdout, r'(?m)^PHYS LINE +PHYS PAGE ')
        self.assertIn('\nlines     physical, as of `report --phys`; --line takes virtual ones, too\n', self.c2c(self.file).stdout)
        physical = report('--phys')
        found = 0
        for virtual in report():
            line = json.loads(self.c2c(self.file, '--line', virtual, '--json').stdout)['line']['line']
            seen = re.search(r'\nvirtual +(0x[0-9a-f]+)', self.c2c(self.file, '--line', line).stdout)
            at = report('--phys', '--addr', f'{virtual}-{int(virtual, 16) + 63:x}')
            if len(at) == 1 and line in physical:    # not moved, and of one process
                self.assertIn(line, at)
                found += seen is not None and seen[1] == virtual
        self.assertGreater(found, 3)

    def test_containers(self):
        """A column has names of one kind: containers if there are any, else threads."""
        wide = dict(os.environ, COLUMNS='200', LC_ALL='C.UTF-8')
        table = self.c2c(self.file, env=wide).stdout.split('\n\n')[1]
        self.assertRegex(table, r'^PHYS LINE .* CONTAINER +MISS')
        self.assertRegex(table, r'\n0x100000280 .* web;db +\d')
        host = os.path.join(self.dir.name, 'host')    # containers and what is in none
        subprocess.run([os.path.join(os.path.dirname(MAKE), 'make_recording'), host, '3000'], check=True, stdout=subprocess.DEVNULL)
        table = self.c2c(host, '--all', env=wide).stdout.split('\n\n')[1]
        self.assertRegex(table, r'^PHYS LINE .* CONTAINER +MISS')
        self.assertIn(' host, no container;', table)
        subprocess.run([os.path.join(os.path.dirname(MAKE), 'make_places'), host, 'sharing'], check=True)
        table = self.c2c(host, env=wide).stdout.split('\n\n')[1]
        self.assertRegex(table, r'^VIRT LINE .* COMM +MISS')
        self.assertNotIn('container', table)
        self.assertIn(f' {self.rows(host)[0]["comms"]} ', table)

    def test_answer(self):
        """The first lines say what is shared; private lines are listed with --all, and in CSV and JSON."""
        listed = self.c2c(self.file).stdout
        rows = self.rows(self.file)
        kinds = [r['verdict'] for r in rows]
        falsely = sum('false' in k for k in kinds)
        self.assertRegex(listed.splitlines()[0], rf'^{falsely} (probably )?falsely shared lines?[:,]')
        self.assertRegex(listed, r'\n\d+ truly shared line.* of HITM')
        self.assertIn('slots     of 8 bytes: W written and used by several', listed)
        private = kinds.count('private')
        self.assertGreater(private, 1)
        self.assertIn(f'{private} lines of one thread or CPU are not listed (--all)', listed)
        self.assertNotRegex(listed, r'(?m)^0x\w+(@\d+)? +private')
        self.assertRegex(self.c2c('--all', '--top', '100', self.file).stdout, r'(?m)^0x\w+(@\d+)? +private')
        for line in self.c2c('--top', '100', self.file, '--columns', 'hitm').stdout.splitlines():
            self.assertNotRegex(line, r' (true|false|both) .* 0%$')
        # a line of a handful of samples is in the table, but no answer
        for samples, lines in (18, 1), (20, 2):
            text = self.c2c(self.make('few', str(samples))).stdout
            self.assertRegex(text, rf'^{lines} falsely shared line')
            self.assertEqual(len(re.findall(r'(?m)^0x\w+ +false ', text)), 2, text)
            self.assertEqual(len(re.findall(r'(?m)^0x\w+: move', text)), lines, text)
        # if no other is shared, it is one where it has a twentieth of all miss cycles: 4 of 80, 4 of 81 loads that missed
        for misses, told in (76, True), (77, False):
            text = self.c2c(self.make('alone', '8', str(misses))).stdout
            self.assertTrue(text.startswith('1 falsely shared line: ' if told else
                            f'No falsely or truly shared line in {misses + 8} samples, but for 1 with fewer than 20.\n'), text)
            self.assertRegex(text, r'(?m)^0x\w+ +false ')
            self.assertEqual(len(re.findall(r'(?m)^0x\w+: move', text)), told, text)

    def test_one_line(self):
        for address in ('0x100000000', '10000003f', '0x7f0000000008'):
            text = self.c2c(self.file, '--line', address).stdout
            self.assertIn('verdict   false sharing', text)
            self.assertNotRegex(text, '(?m) $')
            self.assertIn('bytes     ' + 16 * 'w' + 48 * '.', text)
        narrow = dict(os.environ, COLUMNS='80')
        self.assertRegex(self.c2c(self.file, '--line', '100000000', env=narrow).stdout,
                         r'\nOFFSET .* COMM +MISS CYCLES +HITM\n')
        self.assertRegex(self.c2c(self.file, '--line', '100000280', env=narrow).stdout, r'\nOFFSET .* CONTAINER ')  # two
        rows = self.rows(self.file, '--line', '100000000')
        self.assertEqual([(r['offset'], r['width'], r['access'], r['function'], r['samples']) for r in rows],
                         [(o, '8', k, f, '50') for o, f in (('0', 'count_requests'), ('8', 'count_errors'))
                          for k in ('load', 'store')])
        j = json.loads(self.c2c(self.file, '--line', '100001000', '--json').stdout)
        self.assertEqual([a['offset'] for a in j['accesses']], ['0', '8'])
        self.assertEqual(j['total']['samples'], 50)
        self.assertEqual((j['line']['line'], j['line']['verdict']), ('0x110001000', 'false sharing'))

    def test_json(self):
        j = json.loads(self.c2c(self.file, '--json').stdout)
        self.assertTrue(j['simulated'])
        self.assertEqual(j['addresses'], {'physical': 1350, 'virtual': 50, 'none': 3, 'moved_pages': 1})
        by = {r['line']: r for r in j['lines']}
        first = by['0x100000000']
        self.assertEqual(first['slots'][1]['writers'], [{'name': 'count_errors', 'mangled': None, 'inlined_into': None, 'samples': 50}])
        self.assertEqual([s['stores'] for s in first['slots']], [50, 50] + 6 * [0])
        self.assertIn('64 bytes apart', first['advice'])
        self.assertTrue(by['0x110001000']['moved'])
        self.assertIsNone(by[None]['address'])
        self.assertEqual(j['total']['samples'], 1403)
        self.assertEqual((j['symbols']['named'], sum(j['symbols'].values())), (1403, 1403))
        for c in ('miss_cycles', 'samples', 'stores', 'hitm_near'):
            self.assertEqual(sum(r[c] for r in j['lines']), j['total'][c])
        top = json.loads(self.c2c(self.file, '--json', '--top', '3').stdout)
        self.assertEqual(top['rest']['lines'], len(j['lines']) - 3)
        self.assertEqual(sum(r['samples'] for r in top['lines']) + top['rest']['samples'], 1403)

    def test_intervals(self):
        """Of lines whose page did not move: those of report, which has them from its own sums."""
        compared = 0
        for path in self.file, self.make('random', '1500', '5'):
            lines = {r['line']: r for r in json.loads(self.c2c(path, '--json').stdout)['lines'] if r['address'] == 'physical' and not r['moved']}
            p = run('report', '--by', 'line', '--phys', '--json', path)
            for r in json.loads(p.stdout)['rows']:
                mine = lines.get(r['labels']['line'])
                if not mine or not r['valid'] or mine['samples'] != r['samples']:
                    continue
                for c in ('low', 'high', 'share_low', 'share_high'):
                    rounded = 'share' not in c    # in report
                    self.assertAlmostEqual(mine[c], r[c], delta=max(1e-5 * r[c], rounded), msg=(c, mine, r))
                compared += 1
        self.assertGreater(compared, 20)
        # of the rest: as far as its heaviest sample may be one of the rows
        top = json.loads(self.c2c(self.file, '--json', '--top', '2').stdout)
        for r in top['rest'], top['total']:
            self.assertTrue(0 < r['low'] < r['miss_cycles'] < r['high'], r)

    def test_selection(self):
        rows = {r['line']: r for r in self.rows(self.file, '-p', '101')}
        self.assertEqual(rows['0x100000280']['verdict'], 'private')
        self.assertNotIn('0x100000000', rows)
        self.assertEqual({r['containers'] for r in self.rows(self.file, '--container', 'db')}, {'db'})
        self.rows(self.file, '--filter', 'user == 1')
        p = self.c2c(self.file, '--cpu', '40')
        self.assertIn('no sample is selected', p.stderr)

    def test_no_stores(self):
        p = self.c2c(self.file, '--csv', '--filter', 'addr < 0x7f00000000c0 && addr >= 0x7f0000000080')
        self.assertIn('no sample stores', p.stderr)
        self.assertEqual([r['verdict'] for r in csv.DictReader(io.StringIO(p.stdout))], ['unknown'])

    def test_truncated(self):
        path = os.path.join(self.dir.name, 'cut')
        with open(self.file, 'rb') as f, open(path, 'wb') as out:
            out.write(f.read()[:-60])
        p = self.c2c(path, '--csv', status=1)
        self.assertIn('incomplete', p.stderr)
        self.assertIn('0x100000000', p.stdout)

    def test_no_address(self):
        p = self.c2c(self.make('known', 'nowhere'), status=1)
        self.assertIn('no sample has a data address', p.stderr)
        p = self.c2c(self.file, '--filter', 'addr > 0xfffffffffffffff0')
        self.assertIn('no sample is selected', p.stderr)

    def test_only_virtual(self):
        path = self.make('known', 'virtual')
        self.assertIn('by VIRTUAL address: no physical one is recorded', self.c2c(path).stdout)
        rows = {(r['line'], r['pid']): r for r in self.rows(path)}
        self.assertEqual(rows['0x7f0000000000', '100']['verdict'], 'false sharing')
        self.assertEqual(rows['0x7f0000000040', '100']['verdict'], 'true sharing')
        # two processes at two addresses: nothing shows that this is one line
        self.assertEqual(rows['0x7f0000000280', '100']['verdict'], 'private')
        self.assertEqual(rows['0x7f0100000280', '101']['verdict'], 'private')

    def test_guest(self):
        """A guest reads physical addresses as 0 although they are said to be valid: as if there were none, everywhere."""
        guest, virtual = self.make('known', 'guest'), self.make('known', 'virtual')
        for command in (['c2c', '--csv'], ['numa', '--csv'], ['numa', '--csv', '--by', 'container'],
                        ['report', '--csv', '--by', 'mem_node,distance'], ['report', '--csv', '--by', 'phys_page'],
                        ['report', '--csv', '--by', 'page', '--columns', 'samples,pages,misplaced'],
                        ['replay', '--csv', '--by', 'node,mem_node'],
                        ['replay', '--csv', '--filter', 'phys_addr < 4096']):
            with self.subTest(' '.join(command)):
                texts = [run(*command, path) for path in (guest, virtual)]
                self.assertEqual(texts[0].returncode, texts[1].returncode, texts[0].stderr)
                self.assertEqual(texts[0].stdout, texts[1].stdout)
                self.assertNotRegex(texts[0].stdout, r'(^|,)0x0(,|$)')
        self.assertIn('by VIRTUAL address: no physical one is recorded', self.c2c(guest).stdout)
        rows = list(csv.DictReader(io.StringIO(run('dump', '--csv', guest).stdout)))
        self.assertEqual({r['dc_phys_ad'] for r in rows}, {''})
        self.assertIn('1', {r['dc_phy_addr_valid'] for r in rows})

    def test_perf_data(self):
        """Terms of the event are in its numbers; its name need not show them."""
        packed = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'data', 'perf',
                              '7.2-zen5-op.data.zst')
        data = subprocess.run(['zstd', '-dqc', packed], capture_output=True, check=True).stdout
        attr = struct.unpack_from('<Q', data, 24)[0]
        for at, bits, reason in ((8, 0, None), (8, 1 << 16, 'same complex'), (56, 128, 'ldlat'),
                                 (56, 1 << 12, 'strmst')):
            with self.subTest(reason):
                changed = bytearray(data)
                old = struct.unpack_from('<Q', data, attr + at)[0]
                struct.pack_into('<Q', changed, attr + at, old | bits)
                path = os.path.join(self.dir.name, 'perf.data')
                with open(path, 'wb') as f:
                    f.write(changed)
                p = self.c2c(path, '--csv', status=1 if reason else 0)
                self.assertIn(reason or '', p.stderr)
                self.assertEqual(bool(p.stdout), not reason)

    @unittest.skipUnless(OK, f'no BPF here: {WHY}')
    def test_live(self):
        sim = ('--source', 'sim', '-F', '5000', *ibscope.NOT_DEAR)
        text, at = self.c2c('--live', '--json', *sim, '0.5', '2').stdout, 0
        for _ in range(2):
            j, at = json.JSONDecoder().raw_decode(text, at)
            at += 1
            hot, samples = j['hot'], [r['samples'] for r in j['lines']]
            self.assertEqual((sum(samples), j['total']['samples']), (hot['kept'], hot['kept']))
            self.assertTrue(0 < hot['fed'] >= hot['kept'], hot)
            self.assertEqual((hot['feed'], hot['cpus'] > 0), (['stores', 'caches'], True))
            self.assertTrue(j['simulated'])
            for r in j['lines']:
                self.assertEqual(r['address'], 'physical')
                self.assertNotIn(None, (r['hitm_ccx'], r['hitm_near'], r['hitm_remote'], r['owned']))
                self.assertEqual(sum(s['stores'] for s in r['slots']), r['stores'])
                self.assertEqual(sum(s['loads'] for s in r['slots']), r['loads'])
                self.assertLessEqual(sum(s['hitm'] for s in r['slots']), r['loads'])
        p = self.c2c(*sim, '-a', '--feed', 'walks,caches,dram,stores', '--', 'sleep', '0.3')
        self.assertRegex(p.stdout, r'\d stores, cache hits, memory loads and page walks of \d+ CPUs? are in them, a line lacks at most \d')
        self.assertIn('SIMULATED', p.stdout)

    @unittest.skipUnless(OK, f'no BPF here: {WHY}')
    def test_live_line(self):
        """A line of the live tables: what they know of its slots, and nothing else."""
        hot = ('--live', '--line', '0x100000008', '--source', 'sim', '--sim-ops', 'random', '-F', '5000', *ibscope.NOT_DEAR)
        for _ in range(5):      # a busy host may leave no samples
            text = self.c2c(*hot, '--json', '1', '2').stdout
            first, at = json.JSONDecoder().raw_decode(text)
            found = [j for j in (first, json.loads(text[at:])) if j['line']]
            if found:
                break
        for j in found:
            line, rows = j['line'], j['accesses']
            self.assertEqual((line['line'], line['address']), ('0x100000000', 'physical'))
            for c in 'loads', 'stores':
                self.assertEqual(sum(s[c] for s in line['slots']), line[c])
                self.assertEqual(sum(r[c] for r in rows), line[c])
            for r in rows:
                self.assertEqual({r[c] for c in ('width', 'function', 'comm', 'container', 'miss_cycles', 'hitm',
                                                 'hitm_ccx', 'owned', 'mean')}, {None})
                self.assertTrue(r['threads'] and r['cpus'])
        self.assertTrue(found)
        env = dict(os.environ, COLUMNS='80')
        text = self.c2c(*hot[1:], '-a', '--', 'sleep', '2', env=env).stdout
        table = text[text.index('\noffset '):]
        self.assertLessEqual(max(map(len, table.splitlines())), 80, text)
        slots = re.search(r'(?m)^slots +([rwW.]{64})$', table)[1][::8]
        for what, marks in ('loads', '[rwW]'), ('stores', '[wW]'), ('readers', '[rwW]'), ('writers', '[wW]'):
            counts = re.search(rf'(?m)^{what} +(\S.*\S)$', table)[1].split()
            self.assertEqual(len(counts), 8)
            for mark, n in zip(slots, counts):
                self.assertTrue(n == '0' or re.match(marks, mark), text)
        self.assertIn('functions and latencies only by line', table)
        self.assertRegex(table, rf'\n0x100000000 +\S+ +{re.escape(slots)} ')
        for kind, stdout in (('--csv', 'offset,width,access,.*\n'), ('--json', r'\{.*"line":null,"accesses":\[\](.|\n)*')):
            p = self.c2c('--live', '--line', '7fff00000000', *hot[3:], kind, '1', '1', status=1)
            # in a second of an idle machine there may be none
            self.assertRegex(p.stderr, r'(0x7fff00000000 is not among the \d+ hottest lines, |no line was accessed often enough '
                                       r'to be kept; ).*ibscope record')
            self.assertRegex(p.stdout, f'^{stdout}$')

    @unittest.skipUnless(shutil.which('perf'), 'no perf here')
    def test_perf_c2c(self):
        """What `perf c2c report` says of the same samples, each difference explained: ibscope-c2c(1)."""
        data = os.path.join(self.dir.name, 'c2c.data')
        for args in ('known',), ('random', '3000', '3'), ('random', '3000', '4'):
            path = self.make(*args)
            run('export', '--perf-data', data, path)
            p = subprocess.run(['perf', 'c2c', 'report', '--stdio', '--no-source', '-i', data], capture_output=True, text=True)
            said = {k: int(n) for k, n in re.findall(r'^  (\w[^:\n]*?) *: *(\d+)$', p.stdout, re.M)}
            every = accesses(path)
            loads = [a for a in every if a['load']]
            mapped = [a for a in loads if a['addr']]
            n = collections.Counter(a['from'] for a in mapped)
            src = collections.Counter(a['src'] for a in mapped)
            want = {'Load Operations': len(loads), 'Store Operations': len(every) - len(loads),
                    'Loads - no mapping': len(loads) - len(mapped), 'Load LLC hit': src['l3'],
                    'Load Local HITM': n['hitm_ccx'],
                    'Load Remote HITM': n['hitm_near'] + n['hitm_remote'] + n['hitm_socket'],
                    'Load Remote HIT': 0, 'Store L1D Miss': 0}
            self.assertEqual({k: said.get(k) for k in want}, want, p.stderr)
            total = json.loads(self.c2c(path, '--json').stdout)['total']
            self.assertEqual(total['loads'], said['Load Operations'])
            self.assertEqual(total['stores'], said['Store Operations'] + sum(a['store'] for a in loads))
            self.assertEqual(sum(total[c] or 0 for c in ('hitm_near', 'hitm_remote', 'hitm_socket')),
                             said['Load Remote HITM'] + sum(a['from'] in ('hitm_near', 'hitm_remote', 'hitm_socket')
                                                            for a in loads if not a['addr']))

    def test_refused(self):
        for text, reason in RECORDED:
            with self.subTest(text):
                path = self.make('known', text)
                p = run('c2c', path)
                self.assertEqual(p.returncode, 0 if reason is None else 1, p.stderr)
                if reason:
                    self.assertIn('sharing cannot be judged as it was recorded', p.stderr)
                    self.assertIn(reason, p.stderr)
                    self.assertEqual(p.stdout, '')

    def test_messages(self):
        for cases, status in ((USAGE, 2), (FAILED, 1)):
            for args, text in cases:
                with self.subTest(args):
                    p = self.c2c(*(self.file if a == 'FILE' else a for a in args), status=status)
                    self.assertIn(text, p.stderr)
                    self.assertEqual(p.stdout, '')

    def test_random(self):
        global STRM_ST
        kinds = collections.Counter()
        for seed in range(1, 17):
            with self.subTest(seed=seed):
                STRM_ST = seed % 4 == 3
                path = self.make('random', str(200 * seed), str(seed))
                want, moved = lines_of(accesses(path))
                j = json.loads(self.c2c(path, '--json').stdout)
                self.assertEqual(j['addresses']['moved_pages'], moved)
                got = {(r['address'], number(r['line'] or '0'), r['pid']): r for r in self.rows(path)}
                self.assertEqual({(k[0], k[1], k[2]) for k in want}, set(got))
                for key, line in want.items():
                    r = got[key]
                    kinds[r['verdict'] + r['likely']] += 1
                    self.assertEqual((r['verdict'], r['likely'], r['slots']), verdict(key, line), (key, r))
                    n = line.n
                    self.assertEqual([int(r[c]) for c in ('samples', 'loads', 'stores', 'miss_cycles', 'transfers',
                                                          'cpus', 'threads')],
                                     [n['samples'], n['load'], n['store'], line.cycles, n['transfers'],
                                      len({a['cpu'] for a in line.accesses}),
                                      len({a['tid'] for a in line.accesses})], key)
                    for c in ('hitm_ccx', 'hitm_near', 'hitm_remote', 'hitm_socket', 'owned'):
                        self.assertEqual(int(r[c] or 0), n[c], (key, c))
                    if r['hitm']:
                        self.assertAlmostEqual(float(r['hitm']), line.hitm / line.known, 6)
                    if r['mean']:
                        self.assertAlmostEqual(float(r['mean']), line.sum / n['valid'], delta=0.051)
        for verdict_name in ('private0', 'read-only0', 'shared0', 'false sharing0', 'true sharing0', 'true sharing1',
                             'true and false sharing0', 'true and false sharing1', 'unknown0'):
            self.assertTrue(kinds[verdict_name], (verdict_name, kinds))


if __name__ == '__main__':
    unittest.main()
