# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""BPF programs with mutants, and the tests that load them.

The Makefile makes the objects in a copy of the sources, where headers have mutants for BPF only; user space is compiled with
the usual ones. A constant chooses a mutant, and the verifier drops the others.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys

import schemata
from builds import Build

MOST = 4096     # mutants; a jump reaches 32767 instructions, which limits them far below that


class BpfBuild(Build):
    tests = r'/tests/(bpf|system)/test_'
    runtimes = ['runtime.c', 'runtime_bpf.c']
    link_flags = ['-Wl,--wrap=bpf_object__load', '-Wl,--wrap=bpf_object__load_skeleton']
    most = MOST

    def __init__(self, args):
        super().__init__(args)
        self.tree, self.rejected = os.path.join(self.out, 'tree'), os.path.join(self.out, 'rejected')
        self.env = {'MUTANT_REJECTED': os.path.abspath(self.rejected)}
        self.first = ['-iquote', f'{self.tree}/{self.build}']
        for path in self.tree, self.rejected:
            shutil.rmtree(path, ignore_errors=True)
        os.makedirs(self.rejected)
        os.chmod(self.rejected, 0o777)
        for path in 'bpf', 'include', 'vmlinux', 'tests/bpf', 'tests/unit':
            shutil.copytree(path, os.path.join(self.tree, path))
        shutil.copy('Makefile', self.tree)
        self.sources = {os.path.join(self.build, path[:-2] + '.o'): path for path in glob.glob('tests/bpf/*.bpf.c')}
        self.sources |= {self.object_of(path): path for path in glob.glob('bpf/*.bpf.c')}

    def object_of(self, path):
        return os.path.join(self.build, os.path.basename(path)[:-2] + '.o')

    def source(self, obj):
        return self.sources.get(obj) or super().source(obj)

    def flags(self, obj):
        if obj not in self.sources:
            return super().flags(obj)
        text = subprocess.run(['make', '-Bn', 'V=1', f'O={self.build}', f'CLANG={self.clang}', obj], capture_output=True,
                              text=True, check=True).stdout
        words = shlex.split(next(line for line in text.splitlines() if ' -target bpf ' in line))
        return words[words.index('-O2'):words.index('-MMD')]

    @staticmethod
    def file(path, tree, dropped=()):
        # Of two copies of an offset in the kernel's structures clang makes one before the branches, also where there is
        # none; and offsets in a context must be constant.
        return schemata.File(path, tree, dropped, rb'bpf_core_|ctx->\w+\[')

    def parse(self, obj):
        tree = super().parse(obj)
        for decl in tree['inner']:
            if decl.get('storageClass') == 'static' and not decl.get('isUsed'):
                decl['kind'] = 'UnusedDecl'     # user space alone calls it
        return tree

    def users(self, header):
        if not header.endswith('.bpf.h') and not header.startswith('include/'):
            yield from super().users(header)
            return
        for obj in self.sources:
            with open(obj + '.d') as f:
                if re.search(rf'(^|\s){re.escape(header)}(\s|:|$)', f.read()):
                    yield obj

    def make(self, objects):
        """Return: what the compiler says of errors."""
        goals = [obj[:-6] + '.skel.h' if os.path.dirname(obj) == self.build else obj for obj in objects]
        p = subprocess.run(['make', '-C', self.tree, f'O={self.build}', f'CLANG={self.clang} -w -DBPF_MUTANTS={MOST}', *goals],
                           capture_output=True, text=True)
        return p.stderr if p.returncode else ''

    def mutate(self, path, obj, tree, first, dropped):
        text, mutants = self.file(path, tree, dropped).mutate(first, schemata.BPF_RUNTIME)
        with open(os.path.join(self.tree, path), 'wb') as f:
            f.write(text)
        p = subprocess.run([*shlex.split(self.clang), *self.flags(obj), '-w', f'-DBPF_MUTANTS={MOST}', '-fsyntax-only',
                            self.source(obj)], cwd=self.tree, capture_output=True, text=True,
                           env={**os.environ, 'CCACHE_DISABLE': '1'})
        return mutants, p.stderr if p.returncode else ''

    def make_users(self, files, jobs):
        errors = self.make(self.sources)
        if errors:
            sys.exit(errors)
        for obj in self.sources:
            skeleton = obj[:-6] + '.skel.h'
            self.objects[obj] = os.path.join(self.tree, obj)
            for user in super().users(skeleton):
                errors = self.make_object(user)
                if errors:
                    sys.exit(errors)
        return [path for path in self.link if re.search(self.tests, path)]

    @staticmethod
    def row(path):
        return path

    def print_more(self, states):
        killed = [n for n in map(int, os.listdir(self.rejected)) if states.get(n) == 'killed']
        print(f'{len(killed)} of the killed were rejected by the verifier')
