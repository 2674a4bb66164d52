# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Completion in bash, zsh and fish: what programs offer, and what shells make of it."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tools', 'completion')
BASH = '''source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ibscope; printf '%s\\n' "${COMPREPLY[@]}"'''
# the functions of zsh's completion system that ours calls, which answer as they would
ZSH = '''
_describe() { print -l -- ${offers%%:*} }
_files() { print -l -- ${words[CURRENT]}*(N) }
compset() { }
script=$1; shift; words=("$@"); CURRENT=$#words
source $script
'''
FISH = 'source $argv[1]; complete -C "$argv[2..-1]"'


def commands():
    return re.findall(r'^  ([a-z0-9]+) ', run('--help').stdout, re.M)


class Shell:

    def setUp(self):
        if not shutil.which(self.shell):
            self.skipTest(f'no {self.shell}')

    def call(self, argv, **kw):
        p = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, **kw)
        self.assertEqual(p.stderr, '')
        return p.stdout.splitlines()

    def test_commands(self):
        self.assertEqual(set(self.complete('')), {'help', '--help', '--version', *commands()})
        self.assertEqual(self.complete('his'), ['hist'])
        self.assertIn('replay', self.complete('help', ''))
        self.assertEqual(self.complete('help', 'fi'), ['filter'])
        self.assertEqual(set(self.complete('ctl', '')),
                         {'status', 'ledger', 'snapshot', 'set', 'unset', 'reset', 'reload', 'dump', 'stop', 'unpin'})
        self.assertEqual(self.complete('ctl', 'set', 'max-l'), ['max-lat='])
        self.assertEqual(self.complete('ctl', 'set', 'grace=1', 'max-gr'), ['max-groups='])
        self.assertIn('kernel', self.complete('ctl', 'unset', 'k'))

    def test_options(self):
        for c in commands() if self.shell == 'bash' else ('hist', 'ctl'):
            want = set(re.findall(r'^ +(?:-\w, )?(--[a-z][-.a-z]*)', run(c, '--help').stdout, re.M))
            self.assertTrue(want)
            self.assertEqual(set(self.complete(c, '--')), want, c)

    def test_exporter(self):
        self.assertEqual(self.complete('--web.l', program='ibscope-exporter'), ['--web.listen-address'])
        got = self.complete('--pin-dir', '/sys/fs/cg', program='ibscope-exporter')
        self.assertEqual([x.rstrip('/') for x in got], ['/sys/fs/cgroup'])

    def test_values(self):
        self.assertEqual(set(self.complete('hist', '--metric', '')),
                         {'dc_miss_lat', 'tlb_refill_lat', 'tag_to_ret', 'comp_to_ret',
                          'fetch_lat', 'itlb_refill_lat'})
        self.assertEqual(self.complete('hist', '--op', 'load,st'), ['load,store'])
        self.assertEqual(set(self.complete('hist', '--source', '')), {'auto', 'ibs', 'sim'})
        self.assertLessEqual({'symbol', 'dso', 'line', 'ccx', 'node'}, set(self.complete('report', '--by', '')))
        self.assertEqual(self.complete('report', '--sort', 'p9'), ['p90', 'p99'])
        with tempfile.NamedTemporaryFile(prefix='ibscope-x') as f:
            self.assertEqual(self.complete('serve', '--config', f.name[:-1]), [f.name])
            self.assertEqual(self.complete('report', f.name[:-1]), [f.name])
        self.assertEqual([x for x in self.complete('hist', '--comm', '') if x], [])


class Bash(Shell, unittest.TestCase):
    shell = 'bash'

    def complete(self, *words, program='ibscope'):
        return self.call(['bash', '-c', BASH, 'bash', os.path.join(SCRIPTS, 'ibscope.bash'),
                          os.path.join(ibscope.BUILD, program), *words])

    def test_lists_and_parts(self):
        self.assertEqual(self.complete('hist', '--metric', '=', 'tag'), ['tag_to_ret'])
        self.assertEqual(set(self.complete('hist', '--source', '=')), {'auto', 'ibs', 'sim'})
        self.assertIn('cat', self.complete('hist', '-a', '--', 'ca'))
        for option, least in (('--src', {'dram', 'remote-cxl', 'mab'}), ('--by', {'cgroup', 'ccx', 'mode', 'op'}),
                              ('--op', {'load', 'other'})):
            given = self.complete('hist', option, '')
            self.assertLessEqual(least, set(given))
            for value in given:     # all can be given
                self.assertNotIn(option, run('hist', option, value, '--explain').stderr, value)


    def test_cgroups_of_others(self):
        """Each is one word for the shell, whatever its name; what comes before it runs nothing."""
        names = {'plain', 'a;touch owned', 'x$(touch owned)', '`touch owned`', "it's", '-n', '\x1b[31m'}
        with tempfile.TemporaryDirectory() as d:
            for name in names:
                os.makedirs(f'{d}/mount/{name}')
            for before in '', '/plain,', 'x|;e touch owned;s|a,':
                got = self.call(['bash', '-c', f'awk() {{ echo {d}/mount; }}; {BASH}', 'bash',
                                 os.path.abspath(os.path.join(SCRIPTS, 'ibscope.bash')), ibscope.IBSCOPE, 'hist',
                                 '--cgroup', before + '/'], cwd=d)
                words = ' '.join(word.removeprefix(before) for word in got)
                self.assertEqual({'/' + name for name in names},
                                 set(self.call(['bash', '-c', "printf '%s\\n' " + words], cwd=d)))
            self.assertEqual(os.listdir(d), ['mount'])


class Zsh(Shell, unittest.TestCase):
    shell = 'zsh'

    def complete(self, *words, program='ibscope'):
        return self.call(['zsh', '-fc', ZSH, 'zsh', os.path.join(SCRIPTS, '_ibscope'),
                          os.path.join(ibscope.BUILD, program), *words])

    def test_exporter(self):
        self.assertEqual(self.complete('--web.l', program='ibscope-exporter'), ['--web.listen-address'])


class Fish(Shell, unittest.TestCase):
    shell = 'fish'

    def complete(self, *words, program='ibscope'):
        with tempfile.TemporaryDirectory() as home:
            env = dict(os.environ, PATH=f'{os.path.abspath(ibscope.BUILD)}:{os.environ["PATH"]}', HOME=home)
            lines = self.call(['fish', '--no-config', '-c', FISH, os.path.join(SCRIPTS, 'ibscope.fish'), program, *words],
                              env=env)
        return [line.split('\t')[0] for line in lines]


if __name__ == '__main__':
    unittest.main()
