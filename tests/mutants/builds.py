# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs and tests with mutants: a copy of another build, in a directory of its own."""
import concurrent.futures
import glob
import os
import re
import shlex
import subprocess

import schemata

HERE = os.path.dirname(os.path.abspath(__file__))
MUTANTS_MAX = 1 << 17       # in one build
MEMORY_MAX = 4 << 30


class Build:
    """A copy of the programs and tests of args.build, made with the same commands, in args.out."""
    tests = r'/tests/(unit|bpf)/test_|/tests/fuzz/fuzz_'    # which run
    runtimes, link_flags, env, most = ['runtime.c'], [], {}, MUTANTS_MAX

    def __init__(self, args):
        self.build, self.out, self.cc, self.clang = args.build, args.out, args.cc, args.clang
        # address space; a sanitizer reserves far more than it uses
        self.memory = [] if re.search(r'SAN=\S', args.make) else [f'--as={MEMORY_MAX}']
        text = subprocess.run(['make', '-Bn', 'V=1', *args.make.split(), f'O={args.build}', 'CC=cc', 'all', 'tests'],
                              capture_output=True, text=True, check=True).stdout
        self.compile, self.link = {}, {}
        for line in text.splitlines():
            if not line.startswith('cc ') or ' -shared ' in line:
                continue
            words = [w for w in line.split(' ') if w]
            (self.compile if '-c' in words else self.link)[words[words.index('-o') + 1]] = words[1:]
        self.objects = {}       # of the mutated build, by the usual one
        self.first = [f'-I{self.out}/include']      # flags of the compiler before all others

    def flags(self, obj):
        """For the compiler to read the file as for this object."""
        words = shlex.split(' '.join(self.compile[obj]))
        return [w for w in words[:words.index('-c')] if w not in ('-MMD', '-MP')]

    def object_of(self, path):
        return os.path.join(self.build, path[:-2] + '.o')

    def source(self, obj):
        return self.compile[obj][self.compile[obj].index('-c') + 1]

    file = schemata.File

    def parse(self, obj):
        return schemata.parse(self.clang, self.flags(obj), self.source(obj))

    def users(self, header):
        """Objects that were compiled with a header."""
        for obj in self.compile:
            try:
                with open(obj[:-2] + '.d') as f:
                    if re.search(rf'(^|\s){re.escape(header)}(\s|:|$)', f.read()):
                        yield obj
            except FileNotFoundError:
                continue

    def mutate(self, path, obj, tree, first, dropped):
        """Compile a file with its mutants but those @dropped. Return: these, and what the compiler says of errors."""
        text, mutants = self.file(path, tree, dropped).mutate(first)
        return mutants, (self.make_header(path, obj, text) if path.endswith('.h') else self.make_object(obj, text))

    def make_object(self, obj, text=None):
        """Return: what the compiler says of errors. @text: instead of the source."""
        source, to = self.source(obj), os.path.join(self.out, obj)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if text is not None:
            source = to[:-2] + '.mutants.c'
            with open(source, 'wb') as f:
                f.write(text)
        # -O2 takes minutes for a function with a thousand mutants.
        # From a command line alone, ccache does not see that a header is before another one now.
        p = subprocess.run([*shlex.split(self.cc), '-w', *self.first, *self.flags(obj), '-O1', '-g0', '-iquote',
                            os.path.dirname(self.source(obj)), '-c', source, '-o', to], capture_output=True, text=True,
                           env={**os.environ, 'CCACHE_NODIRECT': '1'})
        if not p.returncode:
            self.objects[obj] = to
        return p.stderr if p.returncode else ''

    def make_header(self, path, user, text):
        to = os.path.join(self.out, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, 'wb') as f:
            f.write(text)
        return self.make_object(user)

    def make_program(self, path):
        words, to = [], os.path.join(self.out, path)
        for w in shlex.split(' '.join(self.link[path])):
            words.append(to if w == path else os.path.join(self.out, 'lib.a') if w.endswith('/libibscope.a')
                         else self.objects.get(w, w))
        if os.path.lexists(to):
            os.remove(to)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        # once more, for the runtime: objects of a program's own may be the only ones that have mutants
        words.append(os.path.join(self.out, 'lib.a'))
        subprocess.run([*shlex.split(self.cc), *self.link_flags, *words], check=True)

    def programs(self, sources):
        """Programs with functions of these sources."""
        names = set()
        for path in sources:
            out = subprocess.run(['nm', '-g', '--defined-only', '-P', self.object_of(path)], capture_output=True,
                                 text=True, check=True).stdout
            names |= {line.split(' ')[0].encode() for line in out.splitlines()}
        for path in self.link:
            with open(path, 'rb') as f:
                if not names.isdisjoint(f.read().split(b'\0')):
                    yield path

    @staticmethod
    def row(path):
        """Of the table, for the mutants of a file."""
        return os.path.dirname(path)

    def print_more(self, states):
        pass

    def make_users(self, files, jobs):
        """Compile what else includes the headers in @files. Return: programs with code of @files."""
        headers = [path for path in files if path.endswith('.h')]
        users = {obj for h in headers for obj in self.users(h)}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for errors in pool.map(self.make_object, sorted(users)):
                if errors:
                    sys.exit(errors)
        return list(self.link if headers else self.programs(files))

    def make_programs(self, programs, jobs):
        """These programs and tests, and links to what else tests look for there."""
        lib = os.path.join(self.out, 'lib.a')
        runtimes = [os.path.join(self.out, name[:-2] + '.o') for name in self.runtimes]
        for name, to in zip(self.runtimes, runtimes):
            subprocess.run([*shlex.split(self.cc), '-O2', '-fPIE', '-D_GNU_SOURCE', f'-DMUTANTS_MAX={MUTANTS_MAX}', '-c',
                            os.path.join(HERE, name), '-o', to], check=True)
        if os.path.exists(lib):
            os.remove(lib)
        members = [self.objects.get(o, o) for o in self.compile if o.startswith(os.path.join(self.build, 'src/'))]
        subprocess.run(['ar', 'rcs', lib, *runtimes, *members], check=True)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.make_program, programs))
        for path in [p for p in self.link if p not in programs] + [
                p for name in ('*.so', '*.html', 'tests/*/*.bpf.o') for p in glob.glob(f'{self.build}/{name}')]:
            to = os.path.join(self.out, path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if os.path.lexists(to):
                os.remove(to)
            os.symlink(os.path.abspath(self.objects.get(path, path)), to)
