# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What runs in no container has one name in all that people read, and the same labels in all that programs read."""
import collections
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

UNIT = os.path.join(ibscope.BUILD, 'tests', 'unit')
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
WORD = 'host, no container'
OTHERS = r'(?<!\S)(/|\[none\]|none)(?=\s|$)'    # names that it had
WIDE = {**os.environ, 'COLUMNS': '300', 'LC_ALL': 'C.UTF-8'}
FORMATS = [], ['--markdown']


def rows(args):
    p = run(*args, '--csv')
    assert p.returncode == 0, p.stderr
    return list(csv.DictReader(p.stdout.splitlines()))


class NoContainer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = os.path.join(cls.dir.name, 'samples.ibs')
        subprocess.run([os.path.join(UNIT, 'make_recording'), cls.file, '3000'], check=True, stdout=subprocess.DEVNULL)

    def text(self, *args):
        p = run(*args, env=WIDE)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def test_views(self):
        """The root cgroup, and what is in no container or pod, in every view that has a row for it."""
        views = [[c, '--by', by] for c in ('report', 'replay', 'numa')
                 for by in ('cgroup', 'container', 'container,comm', 'container,pod')]
        views += [['replay'], ['diff', '--by', 'container'], ['diff', '--by', 'cgroup,comm'], ['c2c']]
        for view in views:
            for form in FORMATS if view != ['c2c'] else ([],):
                with self.subTest(view=view, form=form):
                    files = [self.file] * (2 if view[0] == 'diff' else 1)
                    if view[0] == 'diff':
                        other = os.path.join(self.dir.name, 'other.ibs')
                        subprocess.run([os.path.join(UNIT, 'make_shop'), other, '3000'], check=True)
                        files[1] = other
                    elif view == ['c2c']:
                        files += ['--all']
                    text = self.text(*view, *files, *form)
                    table = '\n'.join(x for x in text.splitlines() if not x.startswith(('SIMULATED', 'slots')))
                    if '--by' not in view or view[0] != 'diff' or 'container' in view[-1]:
                        self.assertIn(WORD, table)
                    if view != ['c2c']:
                        self.assertNotRegex(table.replace('|', ' '), OTHERS)
                    if 'pod' in view[-1]:
                        self.assertIn('no pod', table)

    def test_programs_read_labels(self):
        for by in ('cgroup', 'container', 'container,pod'):
            keys = by.split(',')
            report, replay = rows(['report', '--by', by, self.file]), rows(['replay', '--by', by, self.file])
            names = sorted(tuple(r[k] for k in keys) for r in report)
            self.assertEqual(names, sorted(tuple(r[k] for k in keys) for r in replay))
            self.assertIn('/' if by == 'cgroup' else '', [n[0] for n in names])
            for command in 'report', 'replay':
                j = json.loads(run(command, '--by', by, '--json', self.file).stdout)
                labels = {tuple(r['labels'][k] for k in keys) for r in j['rows' if command == 'report' else 'series']}
                odd = [n for n in names if '\\' in n[0]]    # escaped in different ways
                self.assertLessEqual(set(names) - set(odd), labels)
                self.assertEqual(len(labels), len(set(names)))
        self.assertIn('/', [r['container'] for r in rows(['replay', self.file])])
        for args in (['report', '--by', 'container,pod'], ['replay', '--by', 'container,pod'], ['replay'], ['c2c', '--all'],
                     ['diff', '--by', 'container', self.file]):
            for form in '--csv', '--json':
                self.assertNotIn(WORD, run(*args, form, self.file).stdout, (args, form))

    def test_filters_say_what_to_type(self):
        for option, value, instead in (('--container', WORD, ['--container', '!*']),
                                       ('--container', '!' + WORD, ['--container', '!*']),
                                       ('--cgroup', WORD, ['--container', '!*']),
                                       ('--filter', f'container == "{WORD}"', ['--filter', '!(container =~ "*")']),
                                       ('--filter', f'cgroup == "{WORD}"', ['--filter', '!(container =~ "*")'])):
            with self.subTest(option=option, value=value):
                p = run('report', option, value, self.file)
                self.assertEqual((p.returncode != 0, p.stdout), (True, ''))
                self.assertEqual(p.stderr.count('\n'), 1, p.stderr)
                self.assertTrue(p.stderr.startswith(f"ibscope: error: {option}: '{WORD}' is not a name: "), p.stderr)
                self.assertIn(f"give {instead[0]} '{instead[1]}' to ", p.stderr)
                labels = {r['container'] for r in rows(['report', '--by', 'container', *instead, self.file])}
                self.assertEqual({x for x in labels if not x.startswith('#')}, {''})

    def test_root_cgroup(self):
        """--cgroup / is all cgroups in every command, what is directly in it is the row; patterns that match are not reported."""
        def counts(command, *args):
            p = run(*command, *args, self.file, '--json') if command[0] != 'top' else run(*command, *args, '-i', self.file, env=WIDE)
            self.assertEqual((p.returncode, p.stderr), (0, ''), (command, args))
            if command[0] == 'top':
                found = re.findall(r'(?m)^(\S.*?)  +([\d,]+)(?: |$)', p.stdout.split('SAMPLES', 1)[1])
                return {name: int(n.replace(',', '')) for name, n in found if name != 'total'}, p.stdout
            j = json.loads(p.stdout)
            got = collections.Counter()
            for r in j['rows' if command[0] == 'report' else 'series']:
                got[WORD if r['labels']['cgroup'] == '/' else r['labels']['cgroup']] += r['samples']
            return got, ''
        top = ['top', '--once', '--by', 'cgroup', '--columns', 'samples', '--size', '300x40']
        for command in ['report', '--by', 'cgroup'], ['replay', '--by', 'cgroup'], top:
            with self.subTest(command=command):
                whole, text = counts(command, '--cgroup', '/')
                self.assertEqual((len(whole), '--cgroup /: all cgroups' in text), (5, command is top))
                row, text = counts(command, '--cgroup', '/', '--cgroup=!/*')
                self.assertEqual(row, {WORD: whole[WORD]})
                self.assertNotIn('all cgroups', text)
        p = run('report', '--cgroup', '/nothing*', self.file)
        self.assertIn("--cgroup: no cgroup in the recording matches '/nothing*'", p.stderr)

    def test_page_and_program(self):
        """Two languages, one word."""
        def source(*path):
            with open(os.path.join(TOP, *path)) as f:
                return f.read()
        self.assertIn(f'#define CONTAINER_NONE "{WORD}"', source('src', 'host', 'cgroup', 'container.h'))
        self.assertIn(f"const NO_CONTAINER = '{WORD}';", source('src', 'face', 'view', 'page', 'base.js'))
        for root, _, files in os.walk(os.path.join(TOP, 'src')):
            for name in files:
                if name not in ('container.h', 'base.js') and name.endswith(('.c', '.h', '.js')):
                    self.assertFalse(re.search(WORD, source(root, name)), name)


if __name__ == '__main__':
    unittest.main()
