# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every #include against the table of rooms in src/README.md."""
import collections
import graphlib
import os
import re
import unittest

# Headers that the Makefile writes.
GENERATED = {'page_hashes.h'}
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def includes(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as f:
        return re.findall(r'^\s*#\s*include\s+"([^"]+)"', f.read(), re.M)


def sources(folder):
    for where, _, names in os.walk(os.path.join(TOP, folder)):
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                yield os.path.relpath(os.path.join(where, name), TOP)


def read_table(text):
    """{room: set of rooms it may use}"""
    rows = re.findall(r'^\| ([a-z_]+) \|[^|]*\| ?([a-z_ ]*?) ?\|$', text, re.M)
    return {room: set(uses.split()) for room, uses in rows if room != 'room'}


def cycle(graph):
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as e:
        return e.args[1]
    return None


class Rooms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(TOP, 'src/README.md'), encoding='utf-8') as f:
            cls.table = read_table(f.read())

    def test_table_and_folders_agree(self):
        folders = {d for d in os.listdir(os.path.join(TOP, 'src')) if os.path.isdir(os.path.join(TOP, 'src', d))}
        self.assertEqual(set(self.table), folders)
        for room, uses in self.table.items():
            self.assertLessEqual(uses, folders, room)

    def test_rooms_have_no_cycle(self):
        self.assertIsNone(cycle(self.table))

    def test_no_file_lies_outside_a_room(self):
        self.assertEqual([], [p for p in sources('src') if p.count('/') != 2])

    def test_every_arrow_is_allowed(self):
        bad = []
        for path in sources('src'):
            room = path.split('/')[1]
            for header in includes(path):
                if header.endswith('.skel.h'):
                    if room != 'sampler':
                        bad.append(f'{path}: {header}')
                    continue
                if header in GENERATED:
                    continue
                to = header.split('/')[0] if '/' in header else room
                if to != room and to not in self.table[room]:
                    bad.append(f'{path}: {header}')
                elif not os.path.exists(os.path.join(TOP, 'src', to, os.path.basename(header))):
                    bad.append(f'{path}: {header} does not exist')
                elif to != room and header.endswith('_private.h'):
                    bad.append(f'{path}: {header} is private')
        self.assertEqual([], bad)

    def test_every_allowed_arrow_is_used(self):
        used = collections.defaultdict(set)
        for path in sources('src'):
            for header in includes(path):
                if '/' in header:
                    used[path.split('/')[1]].add(header.split('/')[0])
        spare = {room: uses - used[room] for room, uses in self.table.items() if uses - used[room]}
        self.assertEqual({}, spare)

    def test_files_of_a_room_have_no_cycle(self):
        bad = {}
        for room in self.table:
            graph = collections.defaultdict(set)
            for path in sources(f'src/{room}'):
                me = os.path.splitext(os.path.basename(path))[0]
                for header in includes(path):
                    other = os.path.splitext(os.path.basename(header))[0]
                    if '/' not in header and other != me and not header.endswith('.skel.h'):
                        graph[me].add(other)
            found = cycle(graph)
            if found:
                bad[room] = found
        self.assertEqual({}, bad)

    def test_files_are_created_in_one_place(self):
        """Which no planted link or file leads astray; but for a lock and the file of a key of top."""
        makes = re.compile(r'O_CREAT|O_TRUNC|\bcreat\(|mkstemp|freopen|fopen\([^;]*"[wa][^"]*"\)')
        found = set()
        for path in (*sources('src'), *sources('tools')):
            with open(os.path.join(TOP, path), encoding='utf-8') as f:
                if makes.search(f.read()):
                    found.add(path)
        self.assertEqual(found, {'src/base/output_file.c', 'src/collector/control.c', 'tools/ibscope/top/cmd_top.c'})

    def test_header_names_are_unique(self):
        seen = collections.defaultdict(list)
        for folder in ('include', 'bpf', 'src', 'tools', 'tests'):
            for path in sources(folder):
                if path.endswith('.h'):
                    seen[os.path.basename(path)].append(path)
        self.assertEqual([], [p for p in seen.values() if len(p) > 1])


if __name__ == '__main__':
    unittest.main()
