# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every #include against the table of rooms in src/README.md, and the calls between files of a room."""
import collections
import graphlib
import os
import re
import subprocess
import tempfile
import unittest

# The one room that knows a BPF object and its maps.
SKELETONS = {'ibs_op.skel.h': 'sampler', 'link_events.skel.h': 'pins', 'alloc_probes.skel.h': 'probes'}

# Headers that the Makefile writes.
GENERATED = {'page_hashes.h'}
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PUBLIC_HEADERS = 2
CODE = ('bpf', 'include', 'src', 'tools')
LINES_OF_FILE, LINES_OF_FUNCTION = 600, 60
# Rooms that break a rule still, and how far. Only to become fewer.
MORE_HEADERS = {}
FILES_IN_CIRCLES = {}
ELF_ROOMS = {'src/data/naming', 'src/data/types'}
ELF_HEADER = re.compile(r'^\s*#\s*include\s+[<"]((?:elfutils/.*|libelf|gelf|nlist|libdw|libdwfl|dwarf)\.h)[>"]', re.M)


def includes(path):
    with open(path, encoding='utf-8') as f:
        return re.findall(r'^\s*#\s*include\s+"([^"]+)"', f.read(), re.M)


def sources(top, folder):
    """Paths below top, which begin with the folder."""
    for where, _, names in os.walk(os.path.join(top, folder)):
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                yield os.path.relpath(os.path.join(where, name), top)


class Table:
    """The table of rooms: uses {room: set of rooms}, wing {room: wing}; base is a wing and a room."""
    WINGS = ('base', 'host', 'core', 'data', 'face')

    def __init__(self, text):
        rows = re.findall(r'^\| ([a-z]+) \| ([a-z_]+) \|[^|]*\| ?([a-z_ ]*?) ?\|$', text, re.M)
        rows = [row for row in rows if row[0] != 'wing']
        self.uses = {room: set(uses.split()) for _, room, uses in rows}
        self.wing = {room: wing for wing, room, _ in rows}

    def folder(self, room):
        return 'src/base' if room == 'base' else f'src/{self.wing.get(room)}/{room}'

    def room(self, path):
        """The room of a file below src, by its folder"""
        return os.path.basename(os.path.dirname(path))


def cycle(graph):
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as e:
        return e.args[1]
    return None


# --- rules: what is wrong with a tree whose table of rooms was read

def rooms_without_folder_or_row(top, table):
    folders = {os.path.dirname(p) for p in sources(top, 'src') if p.count('/') > 1}
    rooms = {table.folder(room) for room in table.uses}
    return sorted(rooms ^ folders | set().union(*table.uses.values()) - set(table.uses))


def unknown_wings(_, table):
    return sorted(set(table.wing.values()) - set(table.WINGS))


def cycle_of_rooms(_, table):
    return cycle(table.uses) or []


def arrows_up(_, table):
    """Uses of a room of a higher wing"""
    height = {room: table.WINGS.index(wing) for room, wing in table.wing.items() if wing in table.WINGS}
    return [f'{room} ({table.wing[room]}): {to} ({table.wing[to]})' for room in table.uses
            for to in sorted(table.uses[room]) if height.get(to, 0) > height.get(room, len(table.WINGS))]


def files_outside_of_rooms(top, table):
    folders = {table.folder(room) for room in table.uses}
    return [p for p in sources(top, 'src') if os.path.dirname(p) not in folders]


def forbidden_arrows(top, table):
    bad = []
    for path in sources(top, 'src'):
        room = table.room(path)
        for header in includes(os.path.join(top, path)):
            if header.endswith('.skel.h'):
                if room != SKELETONS.get(header):
                    bad.append(f'{path}: {header}')
                continue
            if header in GENERATED:
                continue
            to = header.split('/')[0] if '/' in header else room
            if to != room and to not in table.uses.get(room, ()):
                bad.append(f'{path}: {header}')
            elif not os.path.exists(os.path.join(top, table.folder(to), os.path.basename(header))):
                bad.append(f'{path}: {header} does not exist')
            elif to != room and header.endswith('_private.h'):
                bad.append(f'{path}: {header} is private')
    return bad


def unused_arrows(top, table):
    used = collections.defaultdict(set)
    for path in sources(top, 'src'):
        for header in includes(os.path.join(top, path)):
            if '/' in header:
                used[table.room(path)].add(header.split('/')[0])
    return [f'{room}: {to}' for room, uses in table.uses.items() for to in sorted(uses - used[room])]


def cycles_of_files(top, table):
    bad = []
    for room in table.uses:
        graph = collections.defaultdict(set)
        for path in sources(top, table.folder(room)):
            me = os.path.splitext(os.path.basename(path))[0]
            for header in includes(os.path.join(top, path)):
                other = os.path.splitext(os.path.basename(header))[0]
                if '/' not in header and other != me and not header.endswith('.skel.h'):
                    graph[me].add(other)
        found = cycle(graph)
        if found:
            bad.append(f'{room}: {found}')
    return bad


def public_headers(top, table):
    """Headers of a room that others include, except of base, which is a wing as well"""
    public = collections.defaultdict(set)
    for path in (*sources(top, 'src'), *sources(top, 'tools')):
        for header in includes(os.path.join(top, path)):
            room = header.split('/')[0]
            if room in table.uses and not path.startswith(table.folder(room) + '/'):
                public[room].add(header)
    return [sorted(public[room]) for room in table.uses
            if room != 'base' and len(public[room]) > MORE_HEADERS.get(room, PUBLIC_HEADERS)]


def calls(objects):
    """{file: files whose functions it calls}, of {file: object}"""
    file_of = {path: file for file, path in objects.items()}
    home, uses = {}, {file: set() for file in objects}
    nm = subprocess.run(['nm', '-Ag', *file_of], capture_output=True, text=True, check=True) if file_of else None
    for line in nm.stdout.splitlines() if nm else ():
        path, symbol = line.split(':', 1)
        kind, name = symbol.split()[-2:]
        if kind == 'T':
            home[name] = file_of[path]
        elif kind == 'U':
            uses[file_of[path]].add(name)
    return {file: {home[name] for name in names if name in home} - {file} for file, names in uses.items()}


def reached(graph, start):
    found, rest = set(), [start]
    while rest:
        new = graph[rest.pop()] - found
        found |= new
        rest += new
    return found


def objects_of(top, room_folder):
    """{file: object} of the files of a room that are built"""
    build = os.environ.get('IBSCOPE_BUILD', os.path.join(TOP, 'build')) if top == TOP else os.path.join(top, 'build')
    found = {path: os.path.join(build, path[:-1] + 'o') for path in sources(top, room_folder) if path.endswith('.c')}
    return {path: o for path, o in found.items() if os.path.exists(o)}


def circles_of_calls(top, table):
    """Files of a room that call each other, in both directions"""
    bad = []
    for room in table.uses:
        graph = calls(objects_of(top, table.folder(room)))
        circle = sorted(file for file in graph if file in reached(graph, file))
        if len(circle) > FILES_IN_CIRCLES.get(room, 0):
            bad.append(circle)
    return bad


def headers_of_one_name(top, _):
    seen = collections.defaultdict(list)
    for folder in ('include', 'bpf', 'src', 'tools', 'tests'):
        for path in sources(top, folder):
            if path.endswith('.h'):
                seen[os.path.basename(path)].append(path)
    return [p for p in seen.values() if len(p) > 1]


def long_files(top, _):
    bad = []
    for path in (p for folder in CODE for p in sources(top, folder)):
        with open(os.path.join(top, path), encoding='utf-8') as f:
            n = sum(1 for _ in f)
        if n > LINES_OF_FILE:
            bad.append(f'{path}: {n} lines')
    return bad


def long_functions(top, _):
    """The lines between braces in the first column"""
    bad = []
    for path in (p for folder in CODE for p in sources(top, folder)):
        start = None
        with open(os.path.join(top, path), encoding='utf-8') as f:
            for i, line in enumerate(f, 1):
                if line == '{\n':
                    start = i
                elif line == '}\n' and start:
                    if i - start - 1 > LINES_OF_FUNCTION:
                        bad.append(f'{path}:{start}: {i - start - 1} lines')
                    start = None
    return bad


def elf_libraries(top, _):
    """libelf and libdw trust what they read: only rooms of the process without privileges call them"""
    bad = []
    for path in (p for folder in CODE for p in sources(top, folder)):
        with open(os.path.join(top, path), encoding='utf-8') as f:
            found = ELF_HEADER.findall(f.read())
        if found and '/'.join(path.split('/')[:3]) not in ELF_ROOMS:
            bad.append(f'{path}: {", ".join(found)}')
    return bad


RULES = (rooms_without_folder_or_row, unknown_wings, arrows_up, cycle_of_rooms, files_outside_of_rooms, forbidden_arrows,
         unused_arrows, cycles_of_files, public_headers, circles_of_calls, headers_of_one_name, long_files,
         long_functions, elf_libraries)

# A tree that obeys them all.
GOOD = {
    'src/README.md': '| wing | room | job | may use |\n|---|---|---|---|\n| base | base | | |\n| host | low | | base |\n'
                     '| data | high | | low |\n| core | sampler | | low |\n',
    'src/base/base.h': '',
    'src/host/low/low.h': '', 'src/host/low/low_private.h': '',
    'src/host/low/low.c': '#include "low.h"\n#include "low_private.h"\n#include "base/base.h"\n',
    'src/data/high/high.h': '', 'src/data/high/high.c': '#include "high.h"\n#include "low/low.h"\n',
    'src/core/sampler/sampler.c': '#include "low/low.h"\n#include "ibs_op.skel.h"\n',
}
README = GOOD['src/README.md']
LOW = GOOD['src/host/low/low.c']
# rule -> files that break it alone
BROKEN = (
    (rooms_without_folder_or_row, {'src/README.md': README + '| face | gone | | |\n'}),
    (unknown_wings, {'src/README.md': README + '| attic | old | | |\n', 'src/attic/old/old.h': ''}),
    (arrows_up, {'src/README.md': README + '| data | side | | sampler |\n| core | over | | side |\n',
                 'src/data/side/side.c': '#include "sampler/sampler.h"\n', 'src/core/over/over.c': '#include "side/side.h"\n',
                 'src/data/side/side.h': '', 'src/core/sampler/sampler.h': ''}),
    (cycle_of_rooms, {'src/README.md': README.replace('| low | | base |', '| low | | base next |') + '| host | next | | low |\n',
                      'src/host/low/low.c': LOW + '#include "next/next.h"\n',
                      'src/host/next/next.h': '', 'src/host/next/next.c': '#include "low/low.h"\n'}),
    (files_outside_of_rooms, {'src/flat.c': ''}),
    (forbidden_arrows, {'src/host/low/low.c': LOW + '#include "high/high.h"\n'}),
    (forbidden_arrows, {'src/data/high/more.c': '#include "low/low_private.h"\n'}),
    (forbidden_arrows, {'src/data/high/more.c': '#include "low/none.h"\n'}),
    (forbidden_arrows, {'src/data/high/more.c': '  #  include "ibs_op.skel.h"\n'}),
    (unused_arrows, {'src/data/high/high.c': '#include "high.h"\n'}),
    (cycles_of_files, {'src/host/low/low.h': '#include "other.h"\n', 'src/host/low/other.h': '',
                       'src/host/low/other.c': '#include "low.h"\n'}),
    (public_headers, {f'src/host/low/{x}.h': '' for x in 'abc'} | {'tools/a.c': '#include "low/a.h"\n#include "low/b.h"\n'}),
    (circles_of_calls, {'src/host/low/a.c': 'void b(void);\nvoid a(void);\nvoid a(void) { b(); }\n',
                        'src/host/low/b.c': 'void a(void);\nvoid b(void);\nvoid b(void) { a(); }\n'}),
    (headers_of_one_name, {'tools/low.h': ''}),
    (long_files, {'tools/long.c': '\n' * 601}),
    (long_functions, {'tools/long.c': 'int f(void)\n{\n' + '\n' * 60 + '\treturn 0;\n' + '}\n'}),
    (elf_libraries, {'tools/elf.c': '#include <elfutils/libdwfl.h>\n'}),
    (elf_libraries, {'src/data/high/more.h': '# include <gelf.h>\n'}),
)
# what breaks two rules at once: a folder without a row, whose files have no room
STRAY = {'src/host/attic/old.h': ''}


def write(top, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
        with open(os.path.join(top, path), 'w', encoding='utf-8') as f:
            f.write(text)


def build(top, files):
    """Compile those without an #include, as make does"""
    for path in files:
        if path.endswith('.c') and '#' not in files[path]:
            out = os.path.join(top, 'build', path[:-1] + 'o')
            os.makedirs(os.path.dirname(out), exist_ok=True)
            subprocess.run(['cc', '-c', '-o', out, os.path.join(top, path)], check=True)


def violations(top):
    """{rule: what it finds}, of rules that find something"""
    with open(os.path.join(top, 'src/README.md'), encoding='utf-8') as f:
        table = Table(f.read())
    found = {rule: rule(top, table) for rule in RULES}
    return {rule.__name__: bad for rule, bad in found.items() if bad}


class Rooms(unittest.TestCase):
    def test_this_tree(self):
        with open(os.path.join(TOP, 'src/README.md'), encoding='utf-8') as f:
            self.assertGreater(len(Table(f.read()).uses), 20)
        self.assertEqual({}, violations(TOP))

    def test_calls_were_read(self):
        """Of this tree, too: the rule passes without objects."""
        with open(os.path.join(TOP, 'src/README.md'), encoding='utf-8') as f:
            table = Table(f.read())
        found = [len(calls(objects_of(TOP, table.folder(room)))) for room in table.uses]
        if not any(found):
            self.skipTest('the library is not built: calls between files were not checked')
        self.assertTrue(all(found))

    def test_each_rule_finds_what_breaks_it(self):
        self.assertEqual({rule for rule, _ in BROKEN}, set(RULES))
        for rule, files in ((None, {}), *BROKEN):
            with self.subTest(rule=rule, files=files), tempfile.TemporaryDirectory() as top:
                write(top, {**GOOD, **files})
                build(top, files)
                self.assertEqual({rule.__name__} if rule else set(), set(violations(top)))

    def test_folder_without_row(self):
        with tempfile.TemporaryDirectory() as top:
            write(top, {**GOOD, **STRAY})
            self.assertEqual({'rooms_without_folder_or_row', 'files_outside_of_rooms'}, set(violations(top)))

    def test_files_are_created_in_one_place(self):
        """Which no planted link or file leads astray; but for a lock, the file of a key of top, and one in a directory of record's."""
        makes = re.compile(r'O_CREAT|O_TRUNC|\bcreat\(|mkstemp|freopen|fopen\([^;]*"[wa][^"]*"\)')
        found = set()
        for path in (*sources(TOP, 'src'), *sources(TOP, 'tools')):
            with open(os.path.join(TOP, path), encoding='utf-8') as f:
                if makes.search(f.read()):
                    found.add(path)
        self.assertEqual(found, {'src/base/output_file.c', 'src/face/collector/control_listen.c', 'tools/allocs/ring.c',
                                 'tools/ibscope/top/cmd_top.c'})


if __name__ == '__main__':
    unittest.main()
