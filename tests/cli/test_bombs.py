# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Small files that would take minutes or gigabytes: each command reads or refuses each within two seconds of CPU time.

Each file is read by a third of the commands, chosen by the commit; with ALL=1 in the environment by all.
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import unittest

import bombs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

CPU_S = 2
PARTS = 3
MIB = 400
COMMANDS = (
    ('report', '--by', 'comm,cgroup,container,pod'), ('report', '--by', 'symbol,dso,line,rank,region'),
    ('report', '--folded', 'total'), ('report', '--html', '{out}'), ('report', '--pprof', '{out}'), ('c2c',), ('numa',),
    ('dump', '--events'), ('replay', '--by', 'comm,cgroup,cpu'), ('replay', '--cgroup', '/**/x*/**'),
    ('export', '-o', '{out}', '-i'), ('annotate', 'main', '-i'), ('merge', '-o', '{out}'), ('top', '--once', '-i'),
    ('diff', '--by', 'comm,pid,ip', '{same}'),
    ('diff', '--html', '/dev/null', '{same}'),
)
# what must be refused by name, and not only survived
REFUSED = {
    'expands to more than 100 times its size': ('forks', 'constant_samples', 'chains', 'regions', 'deep_cgroups', 'metas',
                                                'p_forks', 'p_samples', 'p_rounds'),
    'of the merged file overlap': ('overlapping_parts',),
    'has 50000 recordings, at most 16384': ('too_many_parts',),
    'bytes, at most 4194304': ('long_index',),
    'the index of the merged file is damaged': ('nested_index',),
}


class Bombs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix='ibscope-bombs.')
        self.addCleanup(self.dir.cleanup)
        self.out = os.path.join(self.dir.name, 'out')

    def run_limited(self, *args):
        """Without sanitizers, which take memory and time of their own. Return: (status, stderr, CPU s, peak MiB)"""
        with tempfile.TemporaryFile() as err:
            p = subprocess.Popen(['timeout', '60', os.path.join(ibscope.BUILD, 'ibscope'), *args],
                                 stdout=subprocess.DEVNULL, stderr=err)
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            return p.returncode, err.read().decode(), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024

    def write(self, name):
        """By a process of its own: the memory of this one would count as the peak of those that it starts."""
        path = os.path.join(self.dir.name, name)
        subprocess.run([sys.executable, bombs.__file__, name, path], check=True)
        return path

    def check(self, name):
        path = self.write(name)
        want = [text for text, names in REFUSED.items() if name in names]
        first = BOMBS.index(name)
        calls = [[a.format(out=f'{self.out}.{i}', same=path) for a in command] for i, command in enumerate(COMMANDS)
                 if (first + i) % PARTS in ibscope.turn(PARTS)]
        # CPU time and memory of one are its own, so as many run as there are CPUs
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            done = pool.map(lambda args: self.run_limited(*args, path), calls)
        for args, (status, err, cpu, peak) in zip(calls, done):
            with self.subTest(bomb=name, args=args):
                self.assertIn(status, (0, 1), err)
                self.assertLess(cpu, CPU_S * (1 + args.count(path)))  # diff reads it twice
                self.assertLess(peak, MIB)
                # some do not read perf.data at all
                refused = 'is perf.data, which cannot be merged' in err or 'is already a perf.data file' in err
                for text in () if refused else want:
                    self.assertIn(text, err)
                    self.assertEqual(status, 1)
        os.unlink(path)

    def test_one_limit(self):
        """Each command has the one limit of memory, also those that have no option for it."""
        path = self.write('many_names')
        for command in COMMANDS:
            if command[0] in ('top', 'numa', 'export') or command[-1] in ('total', '/**/x*/**'):
                continue  # they need no names
            args = [a.format(out=self.out, same=path) for a in command]
            with self.subTest(args=args):
                status, err, _, peak = self.run_limited(*args[:1], '--max-memory', '32', *args[1:], path)
                if status:
                    self.assertEqual(status, 1)
                    self.assertRegex(err, r'needs more than the 32 MiB of --max-memory; reading stopped at byte \d+ of')
                self.assertLess(peak, 32 + 40)


def add(name):
    setattr(Bombs, f'test_{name}', lambda self: self.check(name))


BOMBS = *bombs.RECORDINGS, *bombs.MERGED, *bombs.PERF
for bomb in BOMBS:
    add(bomb)


if __name__ == '__main__':
    unittest.main()
