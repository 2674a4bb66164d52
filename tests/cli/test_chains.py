# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Callers that a walk by frame pointers misses: each instruction of functions of several kinds, with exact callers."""
import collections
import json
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

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_types')
# name -> (instruction, (words from the stack pointer to the return address, has a frame) before it)
KINDS = {
    'bare': [('mov (%rdi), %rax', 0, 0), ('add %rax, %rax', 0, 0), ('ret', 0, 0)],
    'framed': [('push %rbp', 0, 0), ('mov %rsp, %rbp', 1, 0), ('sub $32, %rsp', 1, 1), ('mov (%rdi), %rax', 5, 1),
               ('leave', 5, 1), ('ret', 0, 0)],
    'popped': [('push %rbp', 0, 0), ('mov %rsp, %rbp', 1, 0), ('push %rbx', 1, 1), ('mov (%rdi), %rax', 2, 1),
               ('pop %rbx', 2, 1), ('pop %rbp', 1, 1), ('ret', 0, 0)],
    'pushes': [('push %rbx', 0, 0), ('push %r12', 1, 0), ('mov (%rdi), %rbx', 2, 0), ('pop %r12', 2, 0),
               ('pop %rbx', 1, 0), ('ret', 0, 0)],
    'room': [('sub $24, %rsp', 0, 0), ('mov %rdi, 8(%rsp)', 3, 0), ('lea 24(%rsp), %rsp', 3, 0), ('ret', 0, 0)],
    'deep': [('sub $0x108, %rsp', 0, 0), ('mov (%rdi), %rax', 33, 0), ('add $0x108, %rsp', 33, 0), ('ret', 0, 0)],
    'branches': [('test %rdi, %rdi', 0, 0), ('je 1f', 0, 0), ('push %rbp', 0, 0), ('mov %rsp, %rbp', 1, 0),
                 ('mov (%rdi), %rax', 1, 1), ('pop %rbp', 1, 1), ('ret', 0, 0), ('1: xor %eax, %eax', 0, 0), ('ret', 0, 0)],
    'table': [('push %rbx', 0, 0), ('jmp *%rax', 1, 0), ('mov (%rdi), %rbx', 1, 0), ('pop %rbx', 1, 0), ('ret', 0, 0)],
}
# other functions call each of them, some through a pointer
SOURCE = '.section .note.GNU-stack,"",@progbits\n.text\n' + ''.join(
    f'.globl {name}\n.type {name}, @function\n{name}:\n' + ''.join(f'\t{i}\n' for i, *_ in code) + f'.size {name}, . - {name}\n'
    f'.globl of_{name}\n.type of_{name}, @function\nof_{name}:\n\tpush %rbp\n\tmov %rsp, %rbp\n'
    f'\t{"call *%rax" if name == "room" else "call " + name}\nto_{name}:\n\tpop %rbp\n\tret\n.size of_{name}, . - of_{name}\n'
    for name, code in KINDS.items()) + '''
.globl main
.type main, @function
main:
    push %rbp
    mov %rsp, %rbp
    call of_bare
to_main:
    pop %rbp
    ret
.size main, . - main
'''
WORDS = 4


@unittest.skipUnless(shutil.which('gcc'), 'no gcc')
class Chains(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.program = os.path.join(cls.dir.name, 'program')
        with open(cls.program + '.s', 'w', encoding='ascii') as f:
            f.write(SOURCE)
        subprocess.run(['gcc', '-o', cls.program, cls.program + '.s'], check=True)
        nm = subprocess.run(['nm', '-S', cls.program], check=True, capture_output=True, text=True).stdout
        cls.at = {f[-1]: int(f[0], 16) for f in map(str.split, nm.splitlines()) if len(f) > 2}
        cls.code = {}
        for name in KINDS:
            out = subprocess.run(['objdump', '-d', '--no-show-raw-insn', '--disassemble=' + name, cls.program], check=True,
                                 capture_output=True, text=True).stdout
            cls.code[name] = [int(a, 16) for a in re.findall(r'^ +([0-9a-f]+):\t', out, re.M)]
            assert len(cls.code[name]) == len(KINDS[name]), name

    def record(self, lines):
        file = os.path.join(self.dir.name, 'a.ibs')
        subprocess.run([MAKE, file, self.program, 'stacks'], check=True, text=True, input='\n'.join(lines) + '\n')
        return file

    def folded(self, file):
        p = run('report', file, '--folded', 'samples')
        self.assertEqual((p.returncode, p.stderr), (0, ''))
        out = collections.Counter()
        for line in p.stdout.splitlines():
            stack, n = line.rsplit(' ', 1)
            out[tuple(stack.split(';')[2:])] += int(n)
        return out

    def chain(self, at, name, words, framed, others=0):
        """What a walk finds there, and the words at the top of the stack."""
        ret = self.at['to_' + name]
        top = [others] * WORDS
        if words < WORDS:
            top[words] = ret
        walked = [at, *((ret,) if framed else ()), self.at['to_main']]
        return [f'top {" ".join(f"{w:x}" for w in top)}', f'stack {" ".join(f"{a:x}" for a in walked)}', f'{at:x} 0 load 1']

    def test_each_instruction(self):
        lines, want = [], collections.Counter()
        for name, code in KINDS.items():
            for at, (_, words, framed) in zip(self.code[name], code):
                lines += self.chain(at, name, words, framed)
                caller = f'of_{name}' if framed or words < WORDS else '[unknown]'
                want['main', caller, name] += 1
        self.assertEqual(want['main', '[unknown]', 'deep'], 2)
        self.assertEqual(self.folded(self.record(lines)), want)

    def test_no_words(self):
        """As in files of perf: the caller is unknown, which is not the caller's caller."""
        lines, want = [], collections.Counter()
        for name, code in KINDS.items():
            for at, (_, words, framed) in zip(self.code[name], code):
                lines += self.chain(at, name, WORDS, framed)
                want['main', f'of_{name}' if framed else '[unknown]', name] += 1
        self.assertEqual(self.folded(self.record(lines)), want)

    def test_wrong_words(self):
        """A word that no call put there is no return address."""
        lines = []
        for at in self.code['bare']:
            lines += self.chain(at, 'bare', WORDS, 0, others=self.at['to_main'] + 1)
        self.assertEqual(self.folded(self.record(lines)), {('main', '[unknown]', 'bare'): len(self.code['bare'])})

    def test_skid(self):
        """The stack is as at an instruction behind the op."""
        lines, want = [], collections.Counter()
        for name in 'framed', 'popped', 'pushes':
            for i, at in enumerate(self.code[name]):
                for _, words, framed in KINDS[name][i:i + 3]:
                    lines += self.chain(at, name, words, framed)
                    want['main', f'of_{name}', name] += 1
        self.assertEqual(self.folded(self.record(lines)), want)

    def callers(self):
        """bare() called by of_bare() 3 times of 4, and by main() once, in 400 samples."""
        at = self.code['bare'][0]
        lines = []
        for i in range(4):
            ret = self.at['to_bare' if i else 'to_main']
            lines += [f'top {ret:x}', f'stack {at:x} {self.at["to_main"]:x}' if i else f'stack {at:x}', f'{at:x} 0 load 100']
        return self.record(lines)

    def rows(self, file, key):
        p = run('report', file, '--by', key, '--json')
        self.assertEqual((p.returncode, p.stderr), (0, ''))
        return {r['labels'][key]: r['samples'] for r in json.loads(p.stdout)['rows']}

    def test_views(self):
        file = self.callers()
        self.assertEqual(self.rows(file, 'caller'), {'of_bare': 300, 'main': 100})
        self.assertEqual(self.rows(file, 'stack'), {'main;of_bare;bare': 300, 'main;bare': 100})
        p = run('annotate', 'bare', '-i', file)
        self.assertIn('\ncalled by of_bare 75 %, main 25 % of miss cycles\n', p.stdout)
        callers = json.loads(run('annotate', 'bare', '-i', file, '--json').stdout)['callers']
        self.assertEqual([(c['function'], c['samples'], c['sample_share'], c['share']) for c in callers],
                         [('of_bare', 300, 0.75, 0.75), ('main', 100, 0.25, 0.25)])
        self.assertIn('called by of_bare 75 %, main 25 % of miss cycles', run('annotate', 'bare', '-i', file, '--html', '-').stdout)

    def test_diff(self):
        file = os.path.join(self.dir.name, 'many.ibs')
        subprocess.run([os.path.join(os.path.dirname(MAKE), 'make_recording'), file, '20000', 'stacks'], check=True)
        for key in 'caller', 'stack':
            p = run('diff', file, file, '--by', key, '--json')
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertIn(f'"labels":{{"{key}":', p.stdout.replace(' ', ''))

    def test_narrow(self):
        """Chains are cut between functions."""
        p = run('report', self.callers(), '--by', 'stack', env=dict(os.environ, COLUMNS='60', LC_ALL='C.UTF-8'))
        self.assertRegex(p.stdout, r'(?m)^(…|main);of_bare;bare  ')

    def test_without_chains(self):
        file = os.path.join(self.dir.name, 'none.ibs')
        subprocess.run([MAKE, file, self.program], check=True, text=True, input=f'{self.code["bare"][0]:x} 0 load 1\n')
        for args in ('report', file, '--by', 'caller'), ('report', file, '--by', 'stack', '--json'), \
                ('diff', file, file, '--by', 'caller'):
            p = run(*args)
            self.assertEqual((p.returncode, p.stdout), (1, ''))
            self.assertRegex(p.stderr, r'--by (caller|stack): \S+none\.ibs has no call chains; record with -g')
        self.assertNotIn('called by', run('annotate', 'bare', '-i', file).stdout)
        self.assertEqual(json.loads(run('annotate', 'bare', '-i', file, '--json').stdout)['callers'], [])
