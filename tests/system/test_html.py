# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`report --html` in a browser: what it shows equals `report --json` of the same file."""
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

import browser
import ibscope
from ibscope import run

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
SHOP = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_shop')
STRATA = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_strata')
LINES = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_lines')
HEAP = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_heap')
SAMPLES = 20000
MEMORY = 'dram,remote-dram,pmem,remote-pmem,cxl,remote-cxl'
ROW = re.compile(r'<tr data-samples="(\d+)" data-cycles="([\d.e+]+)"(?: data-p50="(\d+)")?(?: data-p99="(\d+)")?[^>]*>'
                 r'<td>(?:<button[^>]* title="([^"]*)")?(.*?)</td>', re.S)


def unescape(text):
    for code, char in (('&lt;', '<'), ('&gt;', '>'), ('&quot;', '"'), ('&nbsp;', '\u00a0'), ('&amp;', '&')):
        text = text.replace(code, char)
    return text


def name_of(labels):
    """As hist calls a group."""
    container = '/'.join(part for part in (labels['pod'], labels['container']) if part)
    return container if labels['container'] else labels['cgroup'] or '[cgroup unknown]'


class Page(unittest.TestCase):
    """A recording and its page."""
    @classmethod
    def make(cls, *command):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file = os.path.join(cls.dir.name, 'a.ibscope')
        subprocess.run([command[0], cls.file, str(SAMPLES), *command[1:]], check=True)
        cls.html = os.path.join(cls.dir.name, 'a.html')
        p = run('report', cls.file, '--html', cls.html)
        assert p.returncode == 0, p.stderr
        with open(cls.html, encoding='utf-8') as f:
            cls.text = f.read()

    def dom(self, link=''):
        """The page as a browser has it, and what the browser complained about."""
        dom, told = browser.browse().dom(f'file://{self.html}{link}', 8000)
        self.assertIn('data-ready="yes"', dom, told)
        self.assertEqual(told, [])
        return dom

    def check_layout(self, b, width):
        """What must hold of every page at every width."""
        b.size(width, 900)
        b.open('file://' + self.html)
        b.until("document.querySelector('[data-ready=yes]') !== null")
        self.assertEqual(json.loads(b.js(TOUCH)), [], width)
        self.assertEqual(json.loads(b.js(BAD_NAMES)), [], width)
        self.assertLessEqual(b.js('document.documentElement.scrollWidth'), width)
        self.assertEqual(b.js("""[...document.querySelectorAll('#legend button, #axes figure, .findings code')]
            .filter(e => e.getBoundingClientRect().right > innerWidth).length"""), 0, width)
        if width >= 1400:    # no column ends far above the other one, and the histograms fill theirs
            self.assertLess(b.js("""(f => Math.abs(f('#left > :last-child') - f('#time')))(
                name => document.querySelector(name).getBoundingClientRect().bottom)"""), 60 if len(json.loads(b.js('JSON.stringify(D.groups)'))) > 2 else 120)
            self.assertLess(b.js("""document.getElementById('axes').getBoundingClientRect().right -
                [...document.querySelectorAll('#axes figure')].reduce((x, e) => Math.max(x, e.getBoundingClientRect().right), 0)"""), 2)

    def rows(self, dom):
        table = re.search(r'<table class="rows" id="rows">.*?</table>', dom, re.S).group()
        return {unescape(m[5]) if m[5] else m[6]: m for m in ROW.finditer(table)}

    def report(self, *args):
        return json.loads(run('report', self.file, '--json', *args).stdout)

    def check(self, dom, *selection):
        """Every row of the page against `report`: samples, miss cycles, percentiles of memory."""
        rows, by = self.rows(dom), ('--by', 'pod,container,cgroup')
        all_rows, period = self.report(*by, *selection), self.report()['events'][0]['period']
        memory = {name_of(r['labels']): r
                  for r in self.report(*by, *selection, *(() if '--src' in selection else ('--src', MEMORY)))['rows']}
        self.assertEqual(all_rows['samples']['selected'], int(rows['Total'][1]))
        shown = 0
        for r in all_rows['rows']:
            name = name_of(r['labels'])
            m = rows.get(name)
            if not m:
                continue
            shown += 1
            self.assertEqual(r['samples'], int(m[1]), name)
            self.assertAlmostEqual((r['total'] or 0) * period, float(m[2]), msg=name, delta=1)
            if name in memory:
                of_memory = memory[name]
                for key, text in (('p50', m[3]), ('p99', m[4])):
                    self.assertEqual(of_memory[key], int(text) if text else None, f'{name} {key}')
        self.assertGreaterEqual(shown, 3)


# Texts of a picture that touch, as "a / b"
TOUCH = """JSON.stringify([...document.querySelectorAll('#heat svg, #mix svg, #axes svg, #machine svg')].flatMap(s => {
    const all = [...s.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    return all.flatMap(([a, r], i) => all.slice(i + 1).filter(([b, q]) => r.left < q.right && q.left < r.right &&
        r.top + 2 < q.bottom && q.top + 2 < r.bottom).map(([b]) => `${a} / ${b}`));
}))"""
# Names that have a gap, lack their end, or are wider than their column
BAD_NAMES = """JSON.stringify([...document.querySelectorAll('.name')].filter(e => e.title && e.clientWidth && (
    e.textContent.slice(-3) !== nameText(e.title).slice(-3) || e.scrollWidth > e.clientWidth ||
    e.children.length > 1 && e.lastChild.getBoundingClientRect().left - (r => (r.selectNodeContents(e.firstChild), r))(document.createRange()).getBoundingClientRect().right > 1))
    .map(e => e.textContent))"""


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Html(Page):
    @classmethod
    def setUpClass(cls):
        cls.make(MAKE, 'stacks')

    def test_numbers_equal_those_of_report(self):
        self.check(self.dom())
        self.assertIn('Memory is DRAM, CXL and persistent memory of any node.', self.text)

    def test_trust(self):
        """The line below the table is that of `report`, up to the width of a bucket."""
        line = r'95% intervals of cycles: ±([\d.]+)%(?: \(first row\) to ±([\d.]+)%)?(?:; (~ fewer than 20 samples))?'
        dom, text = self.dom(), run('report', self.file, '--by', 'pod,container,cgroup').stdout
        got, want = re.search(f'id="trust">{line}<', dom), re.search(f'{line}\\n', text)
        self.assertEqual((got[2] is None, got[3]), (want[2] is None, want[3]))
        for a, b in zip(got.group(1, 2), want.group(1, 2)):
            if b is not None:
                self.assertAlmostEqual(float(a), float(b), delta=.1 if float(b) < 10 else 1)

    def test_attribution(self):
        """What is known of functions and nodes adds up, as `report` has it; of the lines, `c2c`."""
        rows = re.search(r'<table id="attribution-rows">.*?</table>', self.dom(), re.S).group()
        shown = {}
        for name, n, share in re.findall(r'<td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)</td>', rows):
            what, kind = name.split(': ')
            shown.setdefault(what, {})[kind] = int(n.replace(',', ''))
            if shown[what][kind]:
                self.assertNotIn(share, ('0', '\u2013'))
        told = self.report('--by', 'symbol,mem_node')
        c2c = json.loads(run('c2c', self.file, '--json').stdout)['addresses']
        for what, want in (('functions', told['symbols']), ('memory nodes', told['nodes']),
                           ('lines', {'physical': c2c['physical'], 'virtual': c2c['virtual'], 'no_address': c2c['none']})):
            kinds = dict(shown[what])
            self.assertEqual(kinds.pop('all'), sum(kinds.values()), what)
            self.assertEqual({k: n for k, n in kinds.items() if n}, {k: n for k, n in want.items() if n}, what)

    def test_a_selection_filters_every_view(self):
        dom = self.dom('#select&source=dram')
        self.check(dom, '--src', 'dram')
        self.assertIn('--src dram', dom)
        functions = re.search(r'<table class="rows" id="functions">.*?</table>', dom, re.S).group()
        self.assertNotIn('src-l3', functions)

    def test_one_group(self):
        name = next(n for n in (name_of(r['labels']) for r in self.report('--by', 'pod,container,cgroup')['rows'])
                    if n.isascii() and n.isprintable())
        dom = self.dom('#select&group=' + urllib.parse.quote(name))
        self.assertTrue(re.search(r'<tr data-samples="\d+"[^>]*aria-current="true"', dom))
        self.check(dom)     # the table keeps its rows

    def test_it_is_one_small_file_that_asks_for_nothing(self):
        data = sum(len(m) for m in re.findall(r'id="(?:cells|facts)-data">(.*?)</script>', self.text, re.S))
        self.assertLess(len(self.text) - data, 400 * 1024)
        self.assertNotRegex(self.text, r'(src|href)="(?!#)')
        self.assertIn("default-src 'none'", self.text)
        self.assertNotIn(' style="', self.text)

    def test_nothing_stands_out_of_noise(self):
        """Containers of the same samples differ in nothing, as their shares of 26 to 30 % HITM do."""
        findings = re.search(r'<ol class="findings".*?</ol>', self.dom(), re.S).group()
        self.assertIn('No container differs from the rest beyond noise.', findings)
        self.assertIn(' cache lines</b> are shared falsely', findings)
        self.assertEqual(re.findall('Next: <code>([^<]*)', findings), [f'ibscope c2c {self.file}'])
        loads = os.path.join(self.dir.name, 'loads.html')    # of which nobody knows who shares a line
        self.assertEqual(run('report', self.file, '--op', 'load', '--html', loads).returncode, 0)
        dom, told = browser.browse().dom(f'file://{loads}', 8000)
        self.assertEqual(told, [])
        findings = re.search(r'<ol class="findings".*?</ol>', dom, re.S).group()
        self.assertIn('Nothing stands out: no container differs from the rest beyond noise.', findings)

    def test_layout(self):
        """Hostile names and one step of time."""
        with browser.browse().page() as b:
            for width in 390, 800, 1400:
                self.check_layout(b, width)

    def test_simulated_is_said_first(self):
        self.assertIn('<p class="band" role="status">SIMULATED', self.text)

    def test_names_cannot_break_out(self):
        """make_recording has hostile names; none may end a script element or make markup."""
        facts = re.search(r'id="facts-data">(.*?)</script>', self.text, re.S).group(1)
        self.assertNotIn('<', facts)
        names = [g['name'] for g in json.loads(facts)['groups']]
        self.assertTrue(any('\n' in n or '\x1b' in n or '"' in n for n in names + json.loads(facts)['frames']))


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Markup(Page):
    """Every name of the recording is markup, or what ends a script or a line of one."""
    @classmethod
    def setUpClass(cls):
        cls.make(MAKE, 'markup')

    def test_nothing_breaks_out(self):
        for link in '', '#select&source=dram', '#select&group=' + urllib.parse.quote("/<img src=x onerror=alert(1)>"):
            dom = self.dom(link)    # no policy is violated, no script fails
            page = re.sub(r'<script.*?</script>', '', dom, flags=re.S)
            self.assertNotRegex(page, r'<(script|img|s)\b')
            self.assertNotRegex(dom, '<title>owned')
            self.assertIn('&lt;img src=x onerror=', page)
        self.assertEqual(re.findall('[\x00-\x08\x0b-\x1f\u2028-\u202e\ud800-\udfff]', self.text), [])

    def test_what_is_copied_into_a_shell(self):
        """A group or function of the page stays one word of one line."""
        facts = json.loads(re.search(r'id="facts-data">(.*?)</script>', self.text, re.S).group(1))
        code = next(n for n in range(1, len(facts['stacks']) // 2) if 'reboot' in facts['frames'][facts['stacks'][2 * n + 1]])
        for link in f'#select&code={code}', '#select&group=' + urllib.parse.quote('/<!--<script>\x1b[201~\nreboot'):
            command = unescape(re.search(r'<code id="command">(.*?)</code>', self.dom(link), re.S).group(1))
            self.assertIn('reboot', command)
            self.assertEqual(re.findall('[\x00-\x1f\x7f-\x9f]', command), [], command)
        words = subprocess.run(['bash', '-c', 'printf "%s\\0" ' + command], capture_output=True, text=True).stdout.split('\0')
        self.assertNotIn('reboot', words)


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Shop(Page):
    """Of a machine with a topology, containers with names, and functions."""
    @classmethod
    def setUpClass(cls):
        cls.make(SHOP)

    def test_containers_have_their_names(self):
        dom = self.dom('#select&group=' + urllib.parse.quote('shop/db-0/postgres'))
        self.check(dom)
        self.assertIn('ibscope report --container shop/db-0/postgres', dom)

    def test_findings(self):
        """Each one differs from the rest, says why, and its command runs."""
        facts = json.loads(re.search(r'id="facts-data">(.*?)</script>', self.text, re.S).group(1))
        found = {facts['groups'][f['group']]['name'] if 'group' in f else facts['frames'][f['frame']]: f
                 for f in facts['findings']['list']}
        self.assertEqual(found['shop/train-0/trainer']['cause'], 'remote')
        self.assertEqual(found['shop/db-0/postgres']['cause'], 'remote')
        self.assertNotIn('shop/etl-88/spark', found)
        findings = re.search(r'<ol class="findings".*?</ol>', self.dom(), re.S).group()
        commands = [unescape(c) for c in re.findall(r'<code>(.*?)</code>', findings)]
        self.assertEqual(len(commands), len(found))
        self.assertIn(f'ibscope numa {self.file} --container shop/train-0/trainer', commands)
        self.assertRegex(findings, r'trainer</b> waits for another node in 6[0-9.]*.% of its miss cycles; all other containers together: 1[0-9.]*.%\. At their share it would have [0-9.]+.[GM] miss cycles/s less\. Threads run')
        for command in commands:
            p = run(*shlex.split(command)[1:])
            self.assertEqual(p.returncode, 0, command + p.stderr)

    def test_layout(self):
        with browser.browse().page() as b:
            for width in 390, 800, 1400, 1760:
                self.check_layout(b, width)
            # the colours of the topology span the range of its CPUs
            self.assertEqual(b.js("[1, 8].filter(k => document.querySelector(`#machine .a${k}`)).length"), 2)
            self.assertEqual(b.js("middleCut('web-frontend-production-canary-a', 12)"), 'web…canary-a')
            self.assertEqual(b.js("JSON.stringify(partsOf('shop/web…canary-a', true))"), '["shop/web…","canary-a"]')

    def test_commands_read_a_pipe_again(self):
        with open(self.file, 'rb') as f:
            p = subprocess.run([ibscope.IBSCOPE, 'report', '-', '--html', '-'], stdin=f, capture_output=True, text=True)
        facts = json.loads(re.search(r'id="facts-data">(.*?)</script>', p.stdout, re.S).group(1))
        self.assertEqual(facts['file'], '-')
        self.assertEqual({f['command'][2 if f['command'][0] == 'annotate' else 1] for f in facts['findings']['list']}, {'-'})

    def test_a_part_of_the_machine(self):
        """A node of the topology filters like its CPUs, and every level is there."""
        dom = self.dom('#select&place=node,2')
        self.check(dom, '-C', '48-71')
        self.assertIn('-C 48-71', dom)
        for name in ('socket 1', 'node 3', 'L3 7'):
            self.assertIn(f'>{name}</text>', dom)

    def page(self, b):
        b.open('file://' + self.html)
        b.until("document.querySelector('[data-ready=yes]') !== null")

    def test_keyboard_alone(self):
        """A source, a container and a time, chosen and given up without a mouse."""
        chips = "document.querySelector('#chips button')?.parentNode.textContent ?? ''"
        focus = "document.activeElement.textContent"
        with browser.browse().page() as b:
            self.page(b)
            self.assertEqual(b.js(chips), '')
            b.tab_to("e.closest('#legend') && e.title === 'Show only dram'")
            b.key('Enter')
            b.until(f"({chips}).includes('dram')")
            self.assertIn('--src dram', b.js("document.getElementById('command').textContent"))
            self.assertIn('dram', b.js(focus))     # focus survives a redraw
            b.key('Escape')
            b.until(f"({chips}) === ''")
            b.tab_to("e.closest('#rows tbody') && e.title !== 'Total'")
            name = b.js('document.activeElement.title || document.activeElement.textContent')
            b.key('Enter')
            b.until("document.querySelector('#rows tr[aria-current=true]') !== null")
            self.assertIn(name.split('/')[-1], b.js(chips))
            b.key('Escape')
            b.tab_to("e.getAttribute('aria-label')?.startsWith('Latency over time')")
            for _ in range(3):
                b.key('ArrowRight')
            b.until("document.getElementById('read').textContent !== ''")    # screen readers read the cell out
            b.key('ArrowRight', shift=True)
            b.key('Enter')
            b.until(f"({chips}) !== ''")
            b.key('Escape')
            b.until(f"({chips}) === ''")

    def test_paper_and_phones(self):
        with browser.browse().page() as b:
            self.page(b)
            pdf = b.pdf()
            self.assertTrue(pdf.startswith(b'%PDF'))
            self.assertLessEqual(len(re.findall(rb'/Type\s*/Page\b', pdf)), 4)
            b.call('Emulation.setEmulatedMedia', media='print')
            self.assertEqual(b.js("[...document.querySelectorAll('.no-print')].filter(e => e.offsetParent).length"), 0)
            b.call('Emulation.setEmulatedMedia', media='')
            for width in (400, 800, 1400):
                b.size(width, 900)
                self.page(b)
                self.assertLessEqual(b.js('document.documentElement.scrollWidth'), width)
                self.assertGreater(b.js("document.querySelectorAll('#rows tbody tr').length"), 5)
            b.size(400, 900)
            self.page(b)
            self.assertTrue(b.js("""[...document.querySelectorAll('#rows thead th')].filter(e => e.offsetParent)
                .every(e => e.getBoundingClientRect().right <= 400)"""))

    def test_a_function(self):
        frames = json.loads(re.search(r'id="facts-data">(.*?)</script>', self.text, re.S).group(1))['frames']
        row = next(r for r in self.report('--by', 'symbol')['rows'] if r['labels']['symbol'] == 'scan_bucket')
        rows = self.rows(self.dom(f'#select&code={-1 - frames.index("scan_bucket")}'))
        self.assertEqual(row['samples'], int(rows['Total'][1]))
        self.assertEqual(row['samples'], int(rows['shop/db-0/postgres'][1]))


@unittest.skipUnless(shutil.which('chromium') and os.geteuid() == 0, 'needs chromium and root')
class Intervals(Page):
    """hist --html: a column an interval, and no views of what counters do not have."""
    def test_intervals(self):
        with tempfile.TemporaryDirectory() as d:
            self.html = os.path.join(d, 'a.html')
            p = run('hist', '--source', 'sim', '-c', '100000', '--html', self.html, '.3', '4')
            if p.returncode and 'BPF' in p.stderr:
                self.skipTest(p.stderr)
            self.assertEqual((p.returncode, p.stdout), (0, ''), p.stderr)
            with open(self.html, encoding='utf-8') as f:
                facts = json.loads(re.search(r'id="facts-data">(.*?)</script>', f.read(), re.S).group(1))
            dom = self.dom()
        self.assertEqual(facts['bins'], 4)
        self.assertAlmostEqual(facts['duration_s'], 1.2, delta=1)
        aggregated = dict(facts['ledger']['rows'])['aggregated']
        self.assertEqual(facts['ledger']['seen'], aggregated)
        self.assertEqual(int(self.rows(dom)['Total'][1]), aggregated)
        self.assertIn('<section id="topology" aria-labelledby="topology-h" hidden="">', dom)
        self.assertIn('SIMULATED', dom)

    @unittest.skipUnless(*ibscope.can_bpf())
    def test_standard_output(self):
        p = run('hist', '--source', 'sim', '-c', '100000', '--html', '-', '.1', '1')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue(p.stdout.lower().startswith('<!doctype html>') and p.stdout.rstrip().endswith('</html>'))
        self.assertFalse(os.path.exists('-'))

    def test_refusals(self):
        p = run('hist', '--html', 'x', '--json', '1', '1')
        self.assertEqual(p.returncode, 2)
        self.assertIn('--html', p.stderr)


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Job(Page):
    """A merged recording: ranks, threads, regions, nodes of several machines."""
    NODES = 2

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        parts = [os.path.join(cls.dir.name, f'n{k}') for k in range(cls.NODES)]
        for k, part in enumerate(parts):
            subprocess.run([MAKE, part, str(2000 * (k + 1)), f'node:{k}:{2 * cls.NODES}:0:{k}'], check=True)
        cls.file, cls.html = (os.path.join(cls.dir.name, name) for name in ('all', 'a.html'))
        for args in ('merge', '-o', cls.file, *parts), ('report', cls.file, '--html', cls.html):
            p = run(*args)
            assert p.returncode == 0, p.stderr
        with open(cls.html, encoding='utf-8') as f:
            cls.text = f.read()

    def test_every_choice_is_the_same_selection(self):
        """What a rank, thread, region or node leaves of each view is what `report` has for it."""
        with browser.browse().page() as b:
            b.open('file://' + self.html)
            b.until("document.querySelector('[data-ready=yes]') !== null")
            self.check(b.js('document.documentElement.outerHTML'))
            total = "JSON.stringify([R.total.samples, R.total.cycles])"
            for choice, labels in (
                    ("{ rank: [3, 3] }", {'rank': '2'}), ("{ role: D.names.role.indexOf('omp 1') }", {'thread_role': 'omp 1'}),
                    ("{ region: D.names.region.indexOf('</script>solve') }", {'region': '</script>solve'}),
                    ("{ place: ['host', PER_HOST] }", {'host': 'node1'}),
                    ("{ place: ['node', PER_HOST + 1], memory: 1 }", {'host': 'node1', 'node': '1', 'mem_node': '1'}),
                    ("{ rank: [1, 1], source: D.sources.indexOf('dram') }", {'rank': '0', 'src': 'dram'})):
                by = ','.join(dict.fromkeys(['host', *labels]))
                rows = [r for r in self.report('--by', by)['rows'] if all(r['labels'][k] == v for k, v in labels.items())]
                b.js(f'clear(), choose({choice})')
                samples, cycles = json.loads(b.js(total))
                self.assertEqual(samples, sum(r['samples'] for r in rows), choice)
                self.assertAlmostEqual(cycles, sum(r['miss_cycles'] or 0 for r in rows), delta=1, msg=choice)
                link = b.js('location.hash')
                b.js(f'clear(), history.replaceState(null, "", {json.dumps(link)}), readLink(), draw()')
                self.assertEqual(json.loads(b.js(total)), [samples, cycles], link)
                self.assertEqual(b.js("document.querySelectorAll('#chips button').length"), choice.count(':') + 1, choice)
            b.js('clear()')
            for dimension, n in (('rank', 4), ('role', 2), ('region', 2), ('place', 4), ('memory', 2)):
                self.assertEqual(b.js(f"document.querySelectorAll('#axis-{dimension} .item').length"), n, dimension)
                self.assertAlmostEqual(b.js(f"R.axis[AXES.findIndex(a => a.dimension === '{dimension}')].cost.reduce((x, y) => x + y)"),
                                       b.js('R.total.cycles'), delta=1, msg=dimension)
            self.assertAlmostEqual(b.js('[...R.matrix.values()].reduce((a, v) => a + v.cycles, 0)'), b.js('R.total.cycles'), delta=1)
            # one second apart, by their clocks
            self.assertAlmostEqual(b.js('D.duration_s'), 1, delta=.1)

    def test_keyboard_and_widths(self):
        with browser.browse().page() as b:
            b.open('file://' + self.html)
            b.until("document.querySelector('[data-ready=yes]') !== null")
            b.tab_to("e.closest('#axis-rank') !== null")
            for _ in range(2):
                b.key('ArrowDown')
            b.key('ArrowDown', shift=True)
            b.until("`${selected.rank}` === '2,3'")
            self.assertTrue(b.js("document.activeElement.closest('#axis-rank') !== null"))
            self.assertIn('MPI rank', b.js("document.getElementById('axes-read').textContent"))
            b.key('Escape')
            b.tab_to("e.closest('#matrix') !== null")
            b.key('ArrowDown')
            b.key('ArrowRight')
            b.key('Enter')
            b.until("selected.place !== null && selected.memory === 1")
            b.key('Escape')
            b.js("document.getElementById('axis-role').scrollIntoView()")
            point = json.loads(b.js("(r => JSON.stringify([r.x + 60, r.y + 3]))(document.querySelector('#axis-role .item').getBoundingClientRect())"))
            for kind in 'mousePressed', 'mouseReleased':
                b.call('Input.dispatchMouseEvent', type=kind, x=point[0], y=point[1], button='left', clickCount=1)
            b.until("selected.role !== null")
            for width in 400, 1400:
                b.size(width, 900)
                b.until(f'drawnWidth === {width}')
                self.assertLessEqual(b.js('document.documentElement.scrollWidth'), width)
                self.assertEqual(b.js("""[...document.querySelectorAll('#axes svg, #matrix svg')]
                    .filter(e => e.getBoundingClientRect().width > e.parentNode.getBoundingClientRect().width + 1).length"""), 0)

    def test_hostile_names(self):
        dom = self.dom('#select&region=' + urllib.parse.quote('</script>solve'))
        self.assertTrue('region &lt;/script&gt;solve ×' in dom)
        self.assertNotIn('<', re.search(r'id="facts-data">(.*?)</script>', self.text, re.S).group(1))


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Exposed(Page):
    """Containers are ranked by exposed cycles where these are known."""
    def test_order(self):
        with tempfile.TemporaryDirectory() as d:
            self.file, self.html = (os.path.join(d, name) for name in ('a', 'a.html'))
            for known in True, False:
                with self.subTest(known=known):
                    subprocess.run([LINES, self.file, 'known', 'ibs_op/cnt_ctl=%d/' % known, 'late'], check=True)
                    p = run('report', self.file, '--html', self.html)
                    self.assertEqual(p.returncode, 0, p.stderr)
                    dom = self.dom()
                    self.assertRegex(dom, 'aria-sort="descending"><button><span>%s, ' % ('Exposed' if known else 'Miss cycles'))
                    self.assertIn('s by %s cycles</h2>' % ('exposed' if known else 'miss'), dom)
                    r = self.report('--by', 'pod,container,cgroup')
                    want = [row['exposed'] for row in [*r['rows'], r['total']]] if known else []
                    self.assertEqual([float(x) for x in re.findall(r'data-exposed="([\d.]+)"', dom)], want)
                    with browser.browse().page() as b:
                        for width in (390, 800, 1400) if known else ():
                            self.check_layout(b, width)


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Lines(Page):
    """Lines that are shared in known ways."""
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file, cls.html = (os.path.join(cls.dir.name, name) for name in ('a', 'a.html'))
        subprocess.run([LINES, cls.file, 'known'], check=True)
        cls.write(cls.file)

    @classmethod
    def write(cls, *args):
        p = run('report', *args, '--html', cls.html)
        assert p.returncode == 0, p.stderr
        with open(cls.html, encoding='utf-8') as f:
            cls.text = f.read()
        return json.loads(re.search(r'id="facts-data">(.*?)</script>', cls.text, re.S).group(1))

    def test_as_c2c_has_them(self):
        facts, c2c = self.write(self.file), json.loads(run('c2c', self.file, '--json').stdout)
        of = {line['line'] + (f"@{line['pid']}" if line['pid'] else ''): line for line in c2c['lines'] if line['line']}
        private = {name for name, line in of.items() if line['verdict'] == 'private'}
        self.assertEqual({line['line'] for line in facts['lines']}, set(of) - private)
        self.assertEqual((facts['lines_private'], facts['lines_lack']), (len(private), 0))
        text = run('c2c', self.file).stdout
        self.assertIn(f'\n{len(private)} lines of one thread or CPU are not listed', text)    # the same rule
        words = {'both': 'true and false sharing', 'true': 'true sharing', 'false': 'false sharing'}
        for line in facts['lines']:
            want, verdict = of[line['line']], line['verdict'].rstrip('?')
            self.assertEqual(words.get(verdict, verdict), want['verdict'])
            for name in 'writer', 'reader', 'variable':
                names = want[name + 's']
                self.assertEqual((line[name], line[f'other_{name}s']), (names[0]['name'], len(names) - 1) if names else (None, 0))
            for key in 'samples', 'loads', 'stores', 'threads', 'hitm':
                self.assertEqual(line[key], want[key], key)
            self.assertEqual(line['cycles'], want['miss_cycles'])
        falsely = [line for line in facts['lines'] if line['verdict'] in ('false', 'both')]
        share = sum(line['cycles'] for line in falsely) / c2c['total']['miss_cycles']
        dom = self.dom()
        self.assertIn(f' {len(private)} lines of one thread or CPU are not listed.</p>', dom)
        says = re.search(r'<ol class="findings".*?</ol>', dom, re.S).group()
        self.assertGreater(share, .1)
        self.assertRegex(re.sub('<[^>]*>', '', says), rf'{len(falsely)} cache lines are shared falsely, with {100 * share:.1f}.% of all miss cycles')
        self.assertNotIn('Nothing stands out', says)
        self.assertRegex(re.sub('<[^>]*>', '', says), r'Threads write parts of them that others do not use\..*Next: ibscope c2c ' + re.escape(self.file))
        table = re.search(r'<table class="rows" id="line-rows">.*?</table>', dom, re.S).group()
        row = next(r for r in re.findall(r'<tr>.*?</tr>', table) if '>0x100000040<' in r)
        self.assertIn('<b>true sharing</b>', row)
        self.assertIn('title="take_lock"', row)
        self.assertIn('>..W.....<', row)

    def test_what_hides_sharing(self):
        """Without stores nobody knows who shares a line."""
        facts = self.write(self.file, '--src', 'dram,l3')
        self.assertTrue(facts['lines'])
        self.assertEqual({line['verdict'] for line in facts['lines']}, {None})
        self.write(self.file)

    def test_layout(self):
        with browser.browse().page() as b:
            for width in 390, 800, 1280, 1400:
                self.check_layout(b, width)
            b.js("document.querySelector('#line-rows .name').replaceWith(nameOf('/db', 'span')); fitNames()")    # a short path
            self.assertEqual(json.loads(b.js(BAD_NAMES)), [])
            b.js("choose({ group: D.groups.findIndex(g => g.name === 'db') })")
            self.assertEqual(b.js("document.querySelectorAll('#line-rows tbody tr').length"),
                             b.js("D.lines.filter(l => l.groups.includes(selected.group)).length"))


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Sites(Page):
    """Allocations that are known: tests/unit/make_heap.c."""
    TABLE = """JSON.stringify([...document.querySelectorAll('#site-rows tbody tr')].map(e =>
        [e.dataset.samples, e.dataset.cycles, ...[...e.children].slice(0, 3).map(c => c.querySelector('.name')?.title || c.textContent)]))"""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file, cls.html = (os.path.join(cls.dir.name, name) for name in ('a', 'a.html'))

    def write(self, *with_):
        subprocess.run([HEAP, self.file, *with_], check=True)
        p = run('report', self.file, '--html', self.html)
        self.assertEqual(p.returncode, 0, p.stderr)

    def start(self, b):
        b.open('file://' + self.html)
        b.until("document.querySelector('[data-ready=yes]') !== null")

    def test_as_report_has_them(self):
        self.write()
        want = {r['labels']['allocation']: r for r in self.report('--by', 'allocation')['rows']}
        with browser.browse().page() as b:
            self.start(b)
            rows, seen = json.loads(b.js(self.TABLE)), []
            for samples, cycles, name, line, block in rows:
                site = name if name.startswith('[') else f'{name} {line}'
                self.assertEqual(int(samples), want[site]['samples'], site)
                self.assertAlmostEqual(float(cycles), want[site]['miss_cycles'], delta=1, msg=site)
                self.assertEqual(block, {'make_table': '4,160', 'make_index': '4,096'}.get(name, '65,536' if name == 'map_pages' else '–'))
                seen.append(site)
            self.assertEqual(sorted(seen), sorted(want))
            index = next(r['samples'] for site, r in want.items() if site.startswith('make_index'))
            b.js("[...document.querySelectorAll('#site-rows .name')].find(e => e.title === 'make_index').click()")
            self.assertEqual(b.js('R.total.samples'), index)
            self.assertEqual(len(json.loads(b.js(self.TABLE))), len(rows), 'a view keeps what it does not filter')
            self.assertEqual(b.js("document.querySelectorAll('#site-rows [aria-current=true]').length"), 1)
            self.assertIn('allocated by make_index', b.js("document.getElementById('chips').textContent"))
            self.assertIn('--by allocation', b.js("document.getElementById('command').textContent"))
            link = b.js('location.hash')
            b.js(f'clear(), history.replaceState(null, "", {json.dumps(link)}), readLink(), draw()')
            self.assertEqual(b.js('R.total.samples'), index, link)
            # and the table follows what is selected elsewhere
            b.js("clear(), choose({ code: -1 - D.frames.indexOf('load_by'), source: 0 })")
            self.assertEqual(sum(int(r[0]) for r in json.loads(b.js(self.TABLE))), b.js('R.total.samples'))

    def test_many(self):
        """The table has the first of them and the sum of the others; with exposed cycles it has a column more."""
        self.write('much', '500')
        with browser.browse().page() as b:
            self.start(b)
            self.assertEqual(sum(int(r[0]) for r in json.loads(b.js(self.TABLE))), 500)
            known = b.js('R.site.size')
            b.js("""for (let i = 0; i < 20; i++) {
                R.site.set(D.names.site.length, { samples: 2, exposed: i, cost: new Float64Array(S) });
                D.names.site.push(`f${i} <b>.c:1`), D.blocks.push([1, 2]);
            } drawSites()""")
            rows = json.loads(b.js(self.TABLE))
            self.assertEqual(len(rows), 13)
            self.assertEqual(rows[-1][0], str(2 * (20 + known - 12)))
            self.assertEqual(rows[-1][2:], [f'other ({20 + known - 12})', '–', '–'])
            self.assertEqual(rows[-2][3:], ['<b>.c:1', '1–2'])
            cells = """['th', 'tr:first-child td', 'colgroup col'].map(name => [...document.querySelectorAll('#site-rows ' + name)]
                .filter(e => getComputedStyle(e).display !== 'none').length).join()"""
            self.assertEqual(b.js(cells), '6,6,6')
            b.js('D.exposed = true, drawSites()')
            self.assertEqual(b.js(cells), '7,7,7')
            self.assertEqual(json.loads(b.js(self.TABLE))[0][2], 'f19')

    def test_one_function_has_several(self):
        """Where lines have no column, each row still shows the number of its line, and the end of its function."""
        self.write()
        function = 'storage::engine::BlockCache<unsigned long, std::default_delete<Block>>::allocate_slab'
        with browser.browse().page() as b:
            self.start(b)
            for width in 390, 800:
                b.size(width, 900)
                b.js(f"""for (const line of ['cache.cc:118', 'cache.cc:12345', 'directory_of_block_caches.cc:98765']) {{
                    if (!D.names.site.some(name => name.endsWith(line)))
                        D.names.site.push({json.dumps(function)} + ' ' + line), D.blocks.push([64, 64]);
                    R.site.set(D.names.site.findIndex(name => name.endsWith(line)), {{ samples: 1, exposed: 0, cost: new Float64Array(S).fill(9e12) }});
                }} drawSites(), fitNames()""")
                rows = json.loads(b.js("""JSON.stringify([...document.querySelectorAll('#site-rows tbody tr')].slice(0, 3).map(e =>
                    [...e.children].filter(c => c.getBoundingClientRect().width).slice(0, 2).map(c => c.innerText)))"""))
                self.assertEqual(len({tuple(r) for r in rows}), 3, rows)
                seen = [re.search(r':(\d+)', ' '.join(r).replace('::', ''))[1] for r in rows]
                self.assertEqual(sorted(seen), ['118', '12345', '98765'], rows)
                for r in rows:
                    self.assertRegex(r[0], r'^s.*….*slab')
                self.assertEqual(json.loads(b.js(BAD_NAMES)), [], width)
                self.assertEqual(b.js("""[...document.querySelectorAll('#site-rows td:first-child')].filter(e =>
                    [...e.querySelectorAll('*')].some(c => c.getBoundingClientRect().right > e.getBoundingClientRect().right)).length"""), 0, width)

    def test_none(self):
        self.write('none')
        with browser.browse().page() as b:
            self.start(b)
            self.assertTrue(b.js("document.getElementById('sites').hidden"))
            self.assertTrue(b.js("document.querySelector('nav a[href=\"#sites\"]').hidden"))

    def test_layout(self):
        self.write()
        with browser.browse().page() as b:
            for width in 390, 800, 1280:
                self.check_layout(b, width)
                self.assertFalse(b.js("document.getElementById('sites').hidden"))
                self.assertLessEqual(b.js("""Math.max(...[...document.querySelectorAll('#site-rows th, #site-rows td')].map(e => e.getBoundingClientRect().right))"""), width)


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Strata(Page):
    """Samples that represent different numbers of ops."""
    @classmethod
    def setUpClass(cls):
        cls.make(STRATA, '1', '96')

    @classmethod
    def make(cls, program, seed, slices):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.file, cls.html = (os.path.join(cls.dir.name, name) for name in ('a.ibscope', 'a.html'))
        subprocess.run([program, cls.file, seed, slices], check=True, stdout=subprocess.DEVNULL)
        p = run('report', cls.file, '--html', cls.html)
        assert p.returncode == 0, p.stderr

    def test_numbers_equal_those_of_report(self):
        dom, total, memory = self.dom(), self.report()['total'], self.report('--src', MEMORY)['total']
        row = self.rows(dom)['Total']
        self.assertEqual(int(row[1]), total['samples'])
        self.assertAlmostEqual(float(row[2]) / total['miss_cycles'], 1, delta=1e-6)
        self.assertEqual((int(row[3]), int(row[4])), (memory['p50'], memory['p99']))
        for n, e in zip(re.search(r'id="ledger-note"[^>]*>([\d,]+) of the full stratum; ([\d,]+) of the miss stratum; balances', dom).groups(),
                        self.report()['events']):
            self.assertEqual(int(n.replace(',', '')), e['ledger']['seen'])

    def test_selected_source(self):
        """Most samples are from DRAM, most ops of L3 are not: the median of a source is that of its own ops."""
        rows = {r['labels']['src']: r for r in self.report('--by', 'src')['rows']}
        row = self.rows(self.dom('#select&source=l3'))['Total']
        self.assertEqual((int(row[1]), int(row[3])), (rows['l3']['samples'], rows['l3']['p50']))


class Colours(unittest.TestCase):
    """Each source has a colour of its own, also for people who see fewer of them."""
    SAME = {'pmem': 'cxl', 'remote-pmem': 'remote-cxl', 'local-cache': 'l3', 'peer': 'io', 'uncached': 'io'}    # hardly ever in one recording
    SMALL = {'l1', 'io', 'mab', 'unknown', 'none'}    # few miss cycles: for eyes that see fewer colours, nearer to the others
    # Machado et al. 2009: protanopia, deuteranopia, tritanopia
    EYES = (((1, 0, 0), (0, 1, 0), (0, 0, 1)),
            ((.152286, 1.052583, -.204868), (.114503, .786281, .099216), (-.003882, -.048116, 1.051998)),
            ((.367322, .860646, -.227968), (.280085, .672501, .047413), (-.01182, .04294, .968881)),
            ((1.255528, -.076749, -.178779), (-.078411, .930809, .147602), (.004733, .691367, .3039)))

    @staticmethod
    def lab(rgb):
        """OKLab of linear RGB."""
        cones = [max(0, sum(a * b for a, b in zip(row, rgb))) ** (1 / 3) for row in (
            (.4122214708, .5363325363, .0514459929), (.2119034982, .6806995451, .1073969566), (.0883024619, .2817188376, .6299787005))]
        return [sum(a * b for a, b in zip(row, cones)) for row in (
            (.2104542553, .793617785, -.0040720468), (1.9779984951, -2.428592205, .4505937099), (.0259040371, .7827717662, -.808675766))]

    @staticmethod
    def linear(text):
        parts = [int(text[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        return [c / 12.92 if c <= .04045 else ((c + .055) / 1.055) ** 2.4 for c in parts]

    def test_sources(self):
        with open(os.path.join(os.path.dirname(__file__), '../../src/face/view/page/style.css'), encoding='utf-8') as f:
            style = f.read()
        variables = {m[1]: m.group(2, 3) for m in re.finditer(r'--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)', style)}
        of = {name: m[2] for m in re.finditer(r'((?:\.src-[\w-]+(?:, )?)+) \{ fill: var\(--([\w-]+)\)', style)
              for name in re.findall(r'src-([\w-]+)', m[1])}
        self.assertEqual({name: of[name] for name in self.SAME}, {name: of[same] for name, same in self.SAME.items()})
        sources = [s for s in of if s not in self.SAME]
        with open(os.path.join(os.path.dirname(__file__), '../../include/ibscope/op.h'), encoding='utf-8') as f:
            table = re.search(r'#define IBS_SRC_TABLE.*?\n\n', f.read(), re.S).group()
        self.assertEqual(set(of), set(re.findall(r'X\(\w+, "([\w-]+)"', table)))
        for theme in 0, 1:
            plot = sum(a * b for a, b in zip((.2126, .7152, .0722), self.linear(variables['plot'][theme])))
            for i, a in enumerate(sources):
                one = self.linear(variables[of[a]][theme])
                light = sum(x * y for x, y in zip((.2126, .7152, .0722), one))
                self.assertGreaterEqual((max(light, plot) + .05) / (min(light, plot) + .05), 3, a)
                for b in sources[i + 1:]:
                    two = self.linear(variables[of[b]][theme])
                    for eye in self.EYES:
                        least = 6.4 if self.SMALL & {a, b} and eye is not self.EYES[0] else 9.5
                        seen = [self.lab([min(1, max(0, sum(x * y for x, y in zip(row, c)))) for row in eye]) for c in (one, two)]
                        self.assertGreaterEqual(100 * math.dist(*seen), least, (a, b, theme, eye))


class Errors(unittest.TestCase):
    def test_formats_exclude_each_other(self):
        p = run('report', '/dev/null', '--html', 'x', '--json')
        self.assertEqual(2, p.returncode)
        self.assertIn('exclude each other', p.stderr)


if __name__ == '__main__':
    unittest.main()
