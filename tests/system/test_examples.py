# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs of tools/examples, sampled by the simulation: their own functions, fields and lines have names."""
import csv
import fcntl
import glob
import io
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

import ibscope

OK, WHY = ibscope.can_bpf()
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tools/examples')


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.data = {}
        for name in 'false_sharing', 'pointer_chase', 'hot_field':
            program = os.path.join(cls.dir.name, name)
            subprocess.run(['cc', '-O1', '-g', '-pthread', '-o', program, os.path.join(EXAMPLES, name + '.c')], check=True)
            cls.data[name] = os.path.join(cls.dir.name, name + '.data')
            p = ibscope.run('record', '--source', 'sim', '-c', '100000', '-o', cls.data[name], '--', program, '2')
            assert p.returncode == 0, p.stderr

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def rows(self, command, name, *args):
        p = ibscope.run(command, '-i', self.data[name], '--csv', *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return list(csv.DictReader(io.StringIO(p.stdout)))

    def test_demo(self):
        """`make demo` prints commands that work as printed; on a terminal in its width."""
        m, s = os.openpty()
        fcntl.ioctl(s, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 80, 0, 0))
        p = subprocess.Popen([os.path.join(EXAMPLES, '../demo.sh'), ibscope.IBSCOPE, '1'], stdin=subprocess.DEVNULL, stdout=s,
                             stderr=subprocess.PIPE, cwd=self.dir.name, text=True, env={**os.environ, 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1'})
        os.close(s)
        text = ''
        with open(m, encoding='utf-8') as f:
            try:
                while line := f.readline():
                    text += line
            except OSError:     # the other end is closed
                pass
        err = p.communicate()[1]
        self.assertEqual(p.returncode, 0, err)
        self.assertNotIn('stty', err)
        tables = [x for x in text.splitlines() if not x.startswith(('$ ', 'Next: '))]
        self.assertLessEqual(max(map(len, tables)), 80, text)
        said = [x[2:] for x in text.splitlines() if x.startswith('$ ')]
        self.assertEqual([shlex.split(x)[1] for x in said], ['hist', 'record', 'report', 'record', 'report', 'record', 'c2c', 'record', 'annotate'])
        following = [x[6:] for x in text.splitlines() if x.startswith('Next: ')]
        self.assertEqual([shlex.split(x)[1] for x in following], ['top', 'hist'])
        for command in said + following:
            words = shlex.split(command)
            self.assertEqual(words[0], ibscope.IBSCOPE)
            if words[1] in ('hist', 'record', 'top'):
                self.assertEqual('--source sim' in command, 'SIMULATED' in err, command)
        for command in said[5:7]:
            p = subprocess.run(command, shell=True, cwd=self.dir.name, capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn('PHYS LINE', p.stdout)

    def test_symbols(self):
        """The list is walked in one function, which has most miss cycles and all of its cold loads."""
        first = self.rows('report', 'pointer_chase', '--by', 'symbol')[0]
        self.assertEqual(first['symbol'], 'walk_list')
        total = sum(float(r['miss_cycles'] or 0) for r in self.rows('report', 'pointer_chase', '--by', 'symbol'))
        self.assertGreater(float(first['miss_cycles']), 0.5 * total)

    def test_all_of_a_loop(self):
        """Each of its instructions is sampled, although interrupts come behind few of them."""
        p = ibscope.run('annotate', 'walk_list', '-i', self.data['pointer_chase'], '--json')
        self.assertEqual(p.returncode, 0, p.stderr)
        code = [i for i in json.loads(p.stdout)['instructions'] if i.get('samples')]
        self.assertGreaterEqual(len(code), 5)
        loads = [i for i in code if re.search(r'\(%r', i['text'])]
        self.assertGreaterEqual(len(loads), 3, code)
        highest = max((i for i in code if i['share']), key=lambda i: i['share'])
        text = ibscope.run('annotate', 'walk_list', '-i', self.data['pointer_chase']).stdout
        interval = re.search(r'\n95% interval of the highest share: ([\d.]+)% to ([\d.]+)%\n', text)
        self.assertIsNotNone(interval, text)
        for n, end in enumerate(('share_low', 'share_high')):
            self.assertAlmostEqual(float(interval[n + 1]), 100 * highest[end], delta=0.06)

    def test_fields(self):
        """The field that the loop reads, and not its neighbours."""
        rows = [r for r in self.rows('report', 'hot_field', '--by', 'type,field') if r['type'] == 'struct order']
        self.assertEqual(rows[0]['field'], 'price', rows)
        self.assertGreater(int(rows[0]['samples']), 5 * sum(int(r['samples']) for r in rows[1:]), rows)

    def test_false_sharing(self):
        """Two threads write two words of a line, and the loads are answered by the other CPU's cache."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest('one CPU: nothing is shared')
        p = ibscope.run('c2c', '-i', self.data['false_sharing'], '--json')
        self.assertEqual(p.returncode, 0, p.stderr)
        line, = [r for r in json.loads(p.stdout)['lines'] if 'counters' in [v['name'] for v in r['variables']]]
        self.assertEqual(line['verdict'], 'false sharing', line)
        # by each name that the table and the advice use
        for name in ('counters', 'counters.misses', 'counters+8'):
            p = ibscope.run('c2c', '-i', self.data['false_sharing'], '--line', name, '--json')
            self.assertEqual((p.returncode, json.loads(p.stdout or '{"line": {}}')['line'].get('line')), (0, line['line']), (name, p.stderr))
        p = ibscope.run('c2c', '-i', self.data['false_sharing'], '--line', 'counters.none')
        self.assertIn("a line with a variable or field 'counters.none'", p.stderr)


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Tutorial(unittest.TestCase):
    """ibscope-tutorial(7), to the letter: each command is run, and prints each phrase that is quoted behind it."""
    PAGE = os.path.join(EXAMPLES, '../man/ibscope-tutorial.7')

    def steps(self):
        """[(commands, phrases)] in their order."""
        steps = []
        with open(self.PAGE) as f:
            for line in f:
                line = line.rstrip('\n')
                if line.startswith('.Dl ') and (not steps or steps[-1][1]):
                    steps.append(([], []))
                if line.startswith('.Dl '):
                    steps[-1][0].append(line.removeprefix('.Dl '))
                elif line.startswith('.Ql ') and steps:
                    steps[-1][1].append(re.sub(' [,.;:]$', '', line.removeprefix('.Ql ')))
        return steps

    def run_line(self, line):
        words = shlex.split(line)
        if words[0] == 'ibscope':
            words[0] = ibscope.IBSCOPE
        if words[1] == 'record':
            words[2:2] = ['--source', 'sim']
        p = subprocess.run(words, cwd=self.dir.name, env=os.environ | {'NO_COLOR': '1'}, text=True, capture_output=True,
                           stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(p.returncode, 0, (line, p.stderr))
        return ' '.join(p.stdout.split())

    def test_to_the_letter(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest('one CPU: nothing is shared')
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        for name in glob.glob(os.path.join(EXAMPLES, '*.c')):
            shutil.copy(name, self.dir.name)
        (built, phrases), *steps = self.steps()
        self.assertEqual((len(built), phrases), (3, ['--source sim', 'ibscope record', 'SIMULATED']))
        for line in built:
            self.run_line(line)
        self.assertEqual([len(commands) for commands, _ in steps], [2, 1, 2, 2, 2, 2])
        for commands, phrases in steps:
            *_, shown = map(self.run_line, commands)
            self.assertTrue(phrases)
            for phrase in phrases:
                with self.subTest(command=commands[-1], phrase=phrase):
                    self.assertIn(phrase, shown)


if __name__ == '__main__':
    unittest.main()
