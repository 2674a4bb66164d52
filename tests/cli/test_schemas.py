# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What --json prints of recordings, against tools/schemas; the names in the schemas against the tables of the source."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'system'))
import ibscope  # noqa: E402
import schemas  # noqa: E402
import test_inline  # noqa: E402
from ibscope import run  # noqa: E402
from test_diff import counts  # noqa: E402

ROOT = os.path.join(HERE, '..', '..')
UNIT = os.path.join(ibscope.BUILD, 'tests', 'unit')
PERF = os.path.join(HERE, '..', 'data', 'perf')

# what tests/unit writes: name, the program, its arguments; %: the directory of programs
RECORDINGS = {
    'plain': ('make_recording', '400'), 'none': ('make_recording', '0'), 'fetch': ('make_recording', '400', 'only-fetch'),
    'both': ('make_recording', '400', 'fetch'), 'bare': ('make_recording', '400', 'bare'), 'cut': ('make_recording', '400', 'cut'),
    'markup': ('make_recording', '400', 'markup'), 'stacks': ('make_recording', '400', 'stacks'),
    'random': ('make_recording', '400', 'random'), 'node0': ('make_recording', '400', 'node:0:4:0:0'),
    'node1': ('make_recording', '400', 'node:1:4:0:0'), 'shop': ('make_shop', '3000'), 'known': ('make_lines', 'known'),
    'open': ('make_lines', 'known', 'ibs_op/cnt_ctl=1/', 'open'), 'filtered': ('make_lines', 'known', 'ibs_op/cnt_ctl=1,l3missonly=1/'),
    'zen3': ('make_lines', 'known', 'zen3'), 'virtual': ('make_lines', 'known', 'virtual'), 'nowhere': ('make_lines', 'known', 'nowhere'),
    'zen2': ('make_lines', 'random', '400', '1'), 'zen6': ('make_lines', 'random', '400', '3'), 'numa': ('make_lines', 'numa', '400', '0'),
    'selected': ('make_lines', 'known', '-p 100 --comm web'), 'annotated': ('make_annotated',),
    'namesakes': ('make_annotated', 'copy', '%/copy'), 'inlined': ('make_types', '%/inlined'), 'places': ('make_places',), 'heap': ('make_heap',), 'strata': ('make_strata', '1', '48'),
    'coupled': ('make_neighbours', 'coupled', '1'),
}
# of perf: with mixed events, a frequency, mappings of data, and a pipe
PERF_DATA = '5.10-zen2-opfetch', '6.12-zen4-mem', '6.12-zen4-mixed', '7.2-zen5-freq', '7.2-zen5-graph', '7.2-zen5-cgroups'
KEYS = ('cgroup,container,pod,pid,tid,comm,cpu,ccx,node,mem_node,distance,mode,slab,symbol,src,op,dso,srcline,ip,page,phys_page,line',
        'mapping,range,variable,offset,type,field,field_offset,field_size,space,page_size,prefetch,miss,rank,host,region,omp_region,thread_role,event')
COUNTED = 'cgroup,container,pod,pid,tid,comm,cpu,ccx,node,mem_node,distance,mode,src,op'
# what is run on each recording, after its schema; it may refuse one without such samples
EACH = [('report', 'report'), ('report', 'numa'), ('c2c', 'c2c', '--top', '50'), ('hist', 'replay'), ('annotate', 'annotate'),
        ('dump', 'dump', '--events', '--limit', '60')]
# on those of MORE
OPTIONS = [
    ('report', 'report', '--by', KEYS[0]), ('report', 'report', '--by', KEYS[1]), ('report', 'report', '--by', 'fetch,itlb,cgroup'),
    ('report', 'report', '--by', 'src,op', '--top', '1', '--columns', 'p99,samples'), ('report', 'report', '--metric', 'tlb_refill_lat'),
    ('c2c', 'c2c', '--top', '1', '--columns', 'hitm,loads'), ('hist', 'replay', '--by', COUNTED), ('hist', 'replay', '--metric', 'fetch_lat'),
]
MORE = 'plain', 'both', 'random', 'known', 'fetch'
# of one or several; @: the recording of this name
OTHERS = [
    ('report', 'report', '--by', 'rank,host,region,omp_region,thread_role', '@node0', '@node1'), ('report', 'report', '@merged'),
    ('c2c', 'c2c', '--line', 'LINE', '@known'), ('hist', 'replay', '--cgroup', '/', '@plain'), ('dump', 'dump', '@both'),
    ('diff', 'diff', '@shop', '@shop'), ('diff', 'diff', '--per', 'access', '--by', 'container,symbol', '@known', '@open'),
    ('diff', 'diff', '--per', 'second', '@counts', '@others'), ('diff', 'diff', '--a', 'op == load', '--b', 'op == load', '@shop'),
    ('annotate', 'annotate', 'annotated', '-i', '@namesakes'), ('report', 'report', '--by', 'symbol', '--no-demangle', '@inlined'),
    ('annotate', 'annotate', '@shop'), ('report', 'report', '--by', 'caller,stack', '@shop'), ('diff', 'why', '-i', '@shop', 'postgres'), ('diff', 'why', '-i', '@known', 'web'),
    ('report', 'report', '--by', 'allocation,src', '@heap'), ('neighbours', 'neighbours', '@coupled'),
    ('report', 'report', '--by', 'symbol,type,field,field_offset,field_size', '@annotated'),
    ('explain', 'hist', '--explain', '--min-lat', '100', '-p', '1', '--cgroup', '/'), ('explain', 'hist', '--explain', '--src', 'dram'), ('explain', 'hist', '--explain', '--strata', 'auto'),
]
# only a running sampler prints them, and these members of the others: tests/system/test_schemas_live.py and test_neighbours_resctrl.py;
# no processor has op_data4
LIVE = {'ctl-status', 'ctl-ledger', 'doctor', 'doctor-cost', 'doctor-verify', 'exporter-snapshot', 'exporter-history'}
LIVE_MEMBERS = {'dump: op_data4', 'diff: a_edges', 'diff: b_edges', 'hist: end', 'hist: counted_since', 'c2c: hot', *(f'c2c: {x}' for x in ('feed', 'fed', 'kept', 'lack', 'replaced', 'cpus')),
                *(f'neighbours: {x}' for x in ('resctrl', 'groups', 'owned', 'total', 'local', 'occupancy', 'mean', 'peak', 'readings')),
                *schemas.STRATA}

OP, FETCH, PINS = 'include/ibscope/op.h', 'include/ibscope/fetch.h', 'include/ibscope/pin_layout.h'
GOVERNOR, REPORT, TYPES = 'include/ibscope/governor_state.h', 'src/data/report/report.h', 'src/data/types/data_types.h'
# names in schemas: the schema, the way to them, and the tables of the source with the number of the string in each row
TABLES = [
    ('common', '$defs source enum', 0, (OP, 'IBS_SRC_TABLE')), ('common', '$defs op enum', 0, (OP, 'IBS_OP_KIND_TABLE')),
    ('common', '$defs fetch enum', 0, (FETCH, 'IBS_FETCH_CLASS_TABLE')), ('common', '$defs itlb enum', 0, (FETCH, 'IBS_FETCH_ITLB_TABLE')),
    ('common', '$defs metric enum', 0, (OP, 'IBS_OP_METRIC_TABLE'), (OP, 'IBS_FETCH_METRIC_TABLE')),
    ('common', '$defs key enum', 0, ('src/core/rows/rows.h', 'LABEL_TABLE'), ('src/core/rows/rows.h', 'RECORDED_KEY_TABLE')),
    ('common', '$defs labels properties', 0, ('src/core/rows/rows.h', 'LABEL_TABLE'), ('src/core/rows/rows.h', 'RECORDED_KEY_TABLE')),
    ('common', '$defs data_kinds anyOf 0 properties', 0, ('src/data/symbols/symbols.h', 'DATA_KIND_TABLE')),
    ('common', '$defs type_kinds anyOf 0 properties', 0, (TYPES, 'TYPE_KIND_TABLE')),
    ('annotate', 'properties instructions items properties type_found enum', 0, (TYPES, 'TYPE_KIND_TABLE')),
    ('common', '$defs code_kinds anyOf 0 properties', 0, (REPORT, 'CODE_KIND_TABLE')),
    ('common', '$defs node_kinds anyOf 0 properties', 0, (REPORT, 'NODE_KIND_TABLE')),
    ('common', '$defs governor properties state enum', 0, (GOVERNOR, 'GOVERNOR_STATE_TABLE')),
    ('common', '$defs governor properties reason enum', 0, (GOVERNOR, 'GOVERNOR_REASON_TABLE')),
    ('common', '$defs collector properties work properties', 0, (PINS, 'IBS_WORK_TABLE')),
    ('common', '$defs push properties samples properties', 0, (PINS, 'IBS_PUSH_TABLE')),
    ('common', '$defs governor properties nmi_source enum', 0, (PINS, 'IBS_NMI_SOURCE_TABLE')),
    ('c2c', '$defs line properties verdict enum', 0, ('src/data/where/lines.h', 'LINE_VERDICT_TABLE')),
    ('c2c', 'properties hot properties feed items enum', 0, ('include/ibscope/hot_lines.h', 'LINE_FEED_TABLE')),
    ('report', '$defs columns properties', 0, ('src/data/report/report_columns.c', 'COLUMNS')),
    ('c2c', '$defs columns properties', 0, ('src/data/where/lines_rows.c', 'COLUMNS')),
    ('annotate', '$defs columns properties', 0, ('src/face/annotate/annotate.c', 'COLUMNS')),
    ('explain', 'properties predicates items properties stage enum', 1, ('src/core/plan/plan.h', 'PLAN_STAGE_TABLE')),
    ('doctor-verify', 'properties figures items properties id enum', 0, ('src/face/doctor/verify.h', 'VERIFY_TABLE')),
    ('doctor-verify', 'properties loops items properties id enum', 0, ('src/face/doctor/loops.h', 'LOOPS_TABLE')),
]


def rows_of(path, macro):
    """The rows of a table of the source, without what is around them."""
    with open(os.path.join(ROOT, path), encoding='utf-8') as f:
        text = f.read().split(f'#define {macro}(X)', 1)[1]
    text = re.match(r'(?:.*\\\n)*.*\n', text).group().replace('\\\n', ' ')
    return [re.sub(r'"\s+"', '', row) for row in re.split(r'\bX\(', text)[1:]]


def strings(path, macro, number=0):
    return [re.findall(r'"((?:[^"\\]|\\.)*)"', row)[number] for row in rows_of(path, macro)]


@schemas.needed
class Offline(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix='ibscope-schemas.')
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.schemas = schemas.Schemas()
        cls.programs = tempfile.mkdtemp(prefix='ibscope-schemas.')
        cls.addClassCleanup(shutil.rmtree, cls.programs)
        shutil.copy(os.path.join(UNIT, 'make_annotated'), cls.programs + '/copy')
        inlined = cls.compile(cls.programs + '/inlined', test_inline.C)
        for name, (program, *args) in RECORDINGS.items():
            subprocess.run([os.path.join(UNIT, program), cls.path(name), *(a.replace('%', cls.programs) for a in args)],
                           check=True, text=True, input=inlined)
        for name, seed in ('counts', 1), ('others', 2):
            with open(cls.path(name), 'w', encoding='ascii') as f:
                f.write(counts(10, seed))
        for name in PERF_DATA if shutil.which('zstd') else ():
            subprocess.run(['zstd', '-dqo', cls.path(name), os.path.join(PERF, name + '.data.zst')], check=True)
        p = run('merge', '-o', cls.path('merged'), cls.path('node0'), cls.path('node1'))
        assert p.returncode == 0, p.stderr

    @staticmethod
    def compile(program, source):
        """Return: a load by each address in outer(), for make_types."""
        subprocess.run(['gcc', '-O2', '-g', '-x', 'c', '-o', program, '-'], input=source, text=True, check=True)
        symbols = subprocess.run(['nm', '-S', program], check=True, capture_output=True, text=True).stdout
        start, size = (int(n, 16) for n in re.search(r'^(\w+) (\w+) T outer$', symbols, re.M).groups())
        return ''.join(f'{at:x} 1000 load 1\n' for at in range(start, start + size))

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name)

    def check(self, schema, command, *args, statuses=(0,)):
        """Return: the objects that the command printed."""
        p = run(command, '--json', *(self.path(a[1:]) if a.startswith('@') else a for a in args))
        self.assertIn(p.returncode, statuses, f'{command} {args}: {p.stderr}')
        return [] if p.returncode else self.schemas.check_text(schema, p.stdout)

    def check_each(self, names, schema, command, *args):
        """As check() for each recording, in one process. Return: how many objects were printed."""
        with tempfile.TemporaryDirectory(prefix='ibscope-schemas.') as out:
            returned, done, err = ibscope.run_each(out, [command, '--json', *args, '@'], [self.path(name) for name in names])
            self.assertEqual(([os.path.basename(path) for _, path in done], returned), (names, 0), err)
            texts, n = {}, 0
            for i, (name, (status, _)) in enumerate(zip(names, done)):
                with self.subTest(name, words=(command, *args)):
                    self.assertIn(status, (0, 1, 2))
                    with open(os.path.join(out, str(i)), encoding='utf-8') as f:
                        texts[name] = f.read()
                    n += 0 if status else len(self.schemas.check_text(schema, texts[name]))
        # runs before it change nothing
        last = names[-1]
        self.assertEqual(run(command, '--json', *args, self.path(last)).stdout, texts[last])
        return n

    def test_recordings(self):
        """Of all commands, with all kinds of recordings; and the lot of them has all that the schemas describe."""
        printed = dict.fromkeys(EACH + OPTIONS, 0)
        recordings = set(os.listdir(self.dir)) - {'counts', 'others'}
        for names, commands in (sorted(recordings), EACH), (list(MORE), OPTIONS):
            for words in commands:
                with self.subTest(words=words):
                    printed[words] += self.check_each(names, *words)
        self.assertEqual([words for words, n in printed.items() if n < 3], [])
        for words in OTHERS:
            with self.subTest(words):
                if 'LINE' in words:
                    r, = self.check('c2c', 'c2c', '@known')
                    words = [r['lines'][0]['line'] if w == 'LINE' else w for w in words]
                self.assertGreater(len(self.check(*words)), 0)
        offline = set(self.schemas.schema) - LIVE - {'common'}
        self.assertEqual(self.schemas.unseen(*offline, 'head') - LIVE_MEMBERS, set())
        for name in sorted(offline):
            with self.subTest(name, what='unknown members'):
                self.assertEqual(self.schemas.lax(name), [])


@schemas.needed
class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = schemas.Schemas()

    def test_valid(self):
        self.assertGreater(len(self.schemas.schema), 10)
        for name, s in self.schemas.schema.items():
            with self.subTest(name):
                self.schemas.draft.check_schema(s)
                self.assertEqual(s['$schema'], 'https://json-schema.org/draft/2020-12/schema')

    def test_commands(self):
        """All that take --json have a schema, and it says so."""
        commands = re.findall(r'^  ([a-z0-9]+) ', run('--help').stdout, re.M)
        with_json = {c for c in commands if re.search(r'^ +--json ', run(c, '--help').stdout, re.M)}
        self.assertGreater(len(with_json), 9)
        titles = ', '.join(s['title'].removeprefix('ibscope ') for s in self.schemas.schema.values())
        self.assertEqual({m[1] for m in re.finditer(r'(?:^|, | and )(?:ibscope )?([a-z0-9]+)(?: [a-z-]+)*? --json', titles)}, with_json)

    def test_manual(self):
        """The pages name the schemas."""
        named = set()
        for page in glob.glob(os.path.join(ROOT, 'tools', 'man', '*.1')):
            with open(page, encoding='utf-8') as f:
                named |= set(re.findall(r'ibscope-([a-z0-9-]+)\.schema\.json', f.read()))
        self.assertEqual(named, set(self.schemas.schema))

    def test_meanings(self):
        """Each number says what it counts, and in which unit."""
        for name, s in self.schemas.schema.items():
            for o in schemas.objects(s):
                for key, p in o.get('properties', {}).items() if isinstance(o.get('properties'), dict) else ():
                    types = p.get('type', []) if isinstance(p, dict) else []
                    if 'number' in types or 'integer' in types:
                        self.assertIn('description', p, f'{name}: {key}')

    def test_names(self):
        """No name of the tables of the source is missing, in their order."""
        for name, way, number, *tables in TABLES:
            with self.subTest(name, way=way):
                at = self.schemas.schema[name]
                for step in way.split():
                    at = at[int(step) if isinstance(at, list) else step]
                want = [x for path, macro in tables for x in strings(path, macro, number)]
                self.assertGreater(len(want), 2)
                self.assertEqual([x for x in at if x != 'unknown' or x in want], want)

    def test_outcomes(self):
        members = self.schemas.schema['common']['$defs']['ledger']['properties']
        for member, kind in ('filtered', 'FILTERED'), ('lost', 'LOST'):
            want = [re.findall('"([a-z_]+)"', row)[0] for row in rows_of('include/ibscope/outcome.h', 'IBS_OUTCOME_TABLE')
                    if row.split(',')[1].strip() == kind]
            self.assertEqual(members[member]['propertyNames']['enum'], want)
        self.assertEqual(self.schemas.schema['ctl-ledger']['properties'] | members, self.schemas.schema['ctl-ledger']['properties'])

    def test_registers(self):
        """dump has all fields of the registers."""
        for kind, path, macro in (('ibs_op', 'include/ibscope/op_fields.h', 'IBS_OP_FIELD_TABLE'),
                                  ('ibs_fetch', 'include/ibscope/fetch_fields.h', 'IBS_FETCH_FIELD_TABLE')):
            fields = [row.split(',')[2].strip() for row in rows_of(path, macro)]
            members = list(self.schemas.schema['dump']['$defs'][kind]['properties'])
            self.assertEqual(members[-len(fields):], fields)


if __name__ == '__main__':
    unittest.main()
