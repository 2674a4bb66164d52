# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every #include against the table of rooms in src/README.md."""
import collections
import graphlib
import os
import re
import tempfile
import unittest

# Headers that the Makefile writes.
GENERATED = {'page_hashes.h'}
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))



def includes(path):
    with open(path, encoding='utf-8') as f:
        return re.findall(r'^\s*#\s*include\s+"([^"]+)"', f.read(), re.M)


def sources(top, folder):
    """Paths below top, which begin with the folder."""
    for where, _, names in os.walk(os.path.join(top, folder)):
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                yield os.path.relpath(os.path.join(where, name), top)


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


# --- rules: what is wrong with a tree whose table of rooms was read

def rooms_without_folder_or_row(top, table):
    src = os.path.join(top, 'src')
    folders = {d for d in os.listdir(src) if os.path.isdir(os.path.join(src, d))}
    return sorted(set(table) ^ folders | set().union(*table.values()) - folders)


def cycle_of_rooms(_, table):
    return cycle(table) or []


def files_outside_of_rooms(top, _):
    return [p for p in sources(top, 'src') if p.count('/') != 2]


def forbidden_arrows(top, table):
    bad = []
    for path in sources(top, 'src'):
        room = path.split('/')[1]
        for header in includes(os.path.join(top, path)):
            if header.endswith('.skel.h'):
                if room != 'sampler':
                    bad.append(f'{path}: {header}')
                continue
            if header in GENERATED:
                continue
            to = header.split('/')[0] if '/' in header else room
            if to != room and to not in table.get(room, ()):
                bad.append(f'{path}: {header}')
            elif not os.path.exists(os.path.join(top, 'src', to, os.path.basename(header))):
                bad.append(f'{path}: {header} does not exist')
            elif to != room and header.endswith('_private.h'):
                bad.append(f'{path}: {header} is private')
    return bad


def unused_arrows(top, table):
    used = collections.defaultdict(set)
    for path in sources(top, 'src'):
        for header in includes(os.path.join(top, path)):
            if '/' in header:
                used[path.split('/')[1]].add(header.split('/')[0])
    return [f'{room}: {to}' for room, uses in table.items() for to in sorted(uses - used[room])]


def cycles_of_files(top, table):
    bad = []
    for room in table:
        graph = collections.defaultdict(set)
        for path in sources(top, f'src/{room}'):
            me = os.path.splitext(os.path.basename(path))[0]
            for header in includes(os.path.join(top, path)):
                other = os.path.splitext(os.path.basename(header))[0]
                if '/' not in header and other != me and not header.endswith('.skel.h'):
                    graph[me].add(other)
        found = cycle(graph)
        if found:
            bad.append(f'{room}: {found}')
    return bad


def headers_of_one_name(top, _):
    seen = collections.defaultdict(list)
    for folder in ('include', 'bpf', 'src', 'tools', 'tests'):
        for path in sources(top, folder):
            if path.endswith('.h'):
                seen[os.path.basename(path)].append(path)
    return [p for p in seen.values() if len(p) > 1]


RULES = (rooms_without_folder_or_row, cycle_of_rooms, files_outside_of_rooms, forbidden_arrows, unused_arrows, cycles_of_files,
         headers_of_one_name)

# A tree that obeys them all.
GOOD = {
    'src/README.md': '| room | job | may use |\n|---|---|---|\n| low | | |\n| high | | low |\n| sampler | | low |\n',
    'src/low/low.h': '', 'src/low/low_private.h': '', 'src/low/low.c': '#include "low.h"\n#include "low_private.h"\n',
    'src/high/high.h': '', 'src/high/high.c': '#include "high.h"\n#include "low/low.h"\n',
    'src/sampler/sampler.c': '#include "low/low.h"\n#include "ibs_op.skel.h"\n',
}
# rule -> files that break it alone
BROKEN = (
    (rooms_without_folder_or_row, {'src/attic/old.h': ''}),
    (rooms_without_folder_or_row, {'src/README.md': GOOD['src/README.md'] + '| gone | | |\n'}),
    (cycle_of_rooms, {'src/README.md': GOOD['src/README.md'].replace('| low | | |', '| low | | high |'),
                      'src/low/low.c': GOOD['src/low/low.c'] + '#include "high/high.h"\n'}),
    (files_outside_of_rooms, {'src/flat.c': ''}),
    (files_outside_of_rooms, {'src/low/deep/deep.c': ''}),
    (forbidden_arrows, {'src/low/low.c': '#include "low.h"\n#include "high/high.h"\n'}),
    (forbidden_arrows, {'src/high/more.c': '#include "low/low_private.h"\n'}),
    (forbidden_arrows, {'src/high/more.c': '#include "low/none.h"\n'}),
    (forbidden_arrows, {'src/high/more.c': '  #  include "ibs_op.skel.h"\n'}),
    (unused_arrows, {'src/high/high.c': '#include "high.h"\n'}),
    (cycles_of_files, {'src/low/low.h': '#include "other.h"\n', 'src/low/other.h': '', 'src/low/other.c': '#include "low.h"\n'}),
    (headers_of_one_name, {'tools/low.h': ''}),
)


def violations(top):
    """{rule: what it finds}, of rules that find something"""
    with open(os.path.join(top, 'src/README.md'), encoding='utf-8') as f:
        table = read_table(f.read())
    found = {rule: rule(top, table) for rule in RULES}
    return {rule.__name__: bad for rule, bad in found.items() if bad}


class Rooms(unittest.TestCase):
    def test_this_tree(self):
        with open(os.path.join(TOP, 'src/README.md'), encoding='utf-8') as f:
            self.assertGreater(len(read_table(f.read())), 20)
        self.assertEqual({}, violations(TOP))

    def test_each_rule_finds_what_breaks_it(self):
        self.assertEqual({rule for rule, _ in BROKEN}, set(RULES))
        for rule, files in ((None, {}), *BROKEN):
            with self.subTest(rule=rule, files=files), tempfile.TemporaryDirectory() as top:
                for path, text in {**GOOD, **files}.items():
                    os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
                    with open(os.path.join(top, path), 'w', encoding='utf-8') as f:
                        f.write(text)
                self.assertEqual({rule.__name__} if rule else set(), set(violations(top)))

    def test_files_are_created_in_one_place(self):
        """Which no planted link or file leads astray; but for a lock and the file of a key of top."""
        makes = re.compile(r'O_CREAT|O_TRUNC|\bcreat\(|mkstemp|freopen|fopen\([^;]*"[wa][^"]*"\)')
        found = set()
        for path in (*sources(TOP, 'src'), *sources(TOP, 'tools')):
            with open(os.path.join(TOP, path), encoding='utf-8') as f:
                if makes.search(f.read()):
                    found.add(path)
        self.assertEqual(found, {'src/base/output_file.c', 'src/collector/control.c', 'tools/ibscope/top/cmd_top.c'})


if __name__ == '__main__':
    unittest.main()
