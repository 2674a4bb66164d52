# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prometheus' rules and Grafana's dashboard: right, and of metrics that there are."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMETHEUS = os.path.join(ROOT, 'tools', 'prometheus')
DASHBOARD = os.path.join(ROOT, 'tools', 'grafana', 'ibscope.json')
PROMETHEUS_OWN = {'up', 'ALERTS'}
LABELS = {'namespace', 'pod', 'container', 'runtime', 'cgroup', 'src', 'op', 'le', 'reason', 'job', 'instance',
          'fetch', 'itlb', 'l2', 'state', 'work', 'outcome', 'event', 'source', 'metric', 'ibs_caps', 'version', 'exporter_version', 'alertname', 'severity', 'currency'}
SUFFIX = {'COUNTER': ('_total',), 'GAUGE': ('',), 'INFO': ('_info',), 'HISTOGRAM': ('', '_bucket', '_sum', '_count'),
          'SUMMARY': ('_sum', '_count')}


def exported():
    """Every name that the exporter's tables make."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, 'src', 'face', 'metrics', '*.c')):
        with open(path) as f:
            text = f.read()
        for name, kind in re.findall(r'"(\w+)",[\s\\]*(?:METRIC_)?(COUNTER|GAUGE|INFO|HISTOGRAM|SUMMARY)\b', text):
            names.update(name + s for s in SUFFIX[kind])
    return names


def read(path):
    with open(path) as f:
        return f.read()


def rules():
    """The groups of both files, as one file."""
    head, *groups = (read(os.path.join(PROMETHEUS, name)).split('\ngroups:\n') for name in ('rules.yml', 'workload.yml'))
    return '\ngroups:\n'.join(head) + ''.join(text for _, text in groups)


def expressions(text):
    """Of rules: those of `expr:`, also of several lines."""
    out = []
    for m in re.finditer(r'^( *)expr: (.*)\n((?:\1 +.*\n)*)', text, re.M):
        out.append(m[3] if m[2] == '>-' else m[2])
    return out


def named(expr):
    """Metrics of an expression: all words except labels, functions, keywords and strings."""
    expr = re.sub(r'"[^"]*"', '""', expr)
    expr = re.sub(r'\{[^}]*\}|\boffset \w+', ' ', expr)
    expr = re.sub(r'\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)', ' ', expr)
    words = re.findall(r'[A-Za-z_:][\w:]*(?!\w)(?!\s*\()', re.sub(r'\[[^\]]*\]', ' ', expr))
    return {w for w in words if w not in ('or', 'and', 'unless', 'by', 'without', 'bool')}


def labels_of(expr):
    text = re.sub(r'"[^"]*"', '', expr)
    out = set()
    for m in re.finditer(r'\{([^}]*)\}', text):
        out |= set(re.findall(r'(\w+)\s*[=!]', m[1]))
    for m in re.finditer(r'\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)', text):
        out |= set(re.findall(r'\w+', m[1]))
    return out


def compares_samples(expr):
    """Does it make a share of samples? Those of another period stand for another number of ops."""
    return 'ibscope_samples_total' in expr and '/' in re.sub(r'"[^"]*"', '', expr)


class Rules(unittest.TestCase):
    @unittest.skipUnless(shutil.which('promtool'), 'promtool is not here')
    def test_promtool(self):
        for args in (('check', 'rules', 'rules.yml', 'workload.yml'), ('test', 'rules', 'rules_test.yml', 'workload_test.yml')):
            p = subprocess.run(['promtool', *args], cwd=PROMETHEUS, capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def test_metrics_are_there(self):
        text = rules()
        there = exported() | set(re.findall(r'record: (\S+)', text)) | PROMETHEUS_OWN
        exprs = expressions(text)
        self.assertEqual(len(exprs), len(re.findall(r'- (?:record|alert):', text)))
        for e in exprs:
            self.assertTrue(named(e), e)
            self.assertEqual(named(e) - there, set(), e)
            self.assertLessEqual(labels_of(e), LABELS, e)
            self.assertFalse(compares_samples(e), e)

    def test_every_alert_is_tested(self):
        tests = ''.join(read(os.path.join(PROMETHEUS, name)) for name in ('rules_test.yml', 'workload_test.yml'))
        alerts = re.findall(r'alert: (\w+)', rules())
        self.assertGreater(len(alerts), 8)
        for a in alerts:
            self.assertIn(f'alertname="{a}"', tests)

    def test_every_alert_tells_what_to_do(self):
        for alert in re.split(r'- alert: ', rules())[1:]:
            name = alert.split('\n')[0]
            self.assertEqual(re.findall(r'^ +(summary|description|runbook): \S', alert, re.M),
                             ['summary', 'description', 'runbook'], name)
            self.assertRegex(alert, r'severity: (info|warning|critical)', name)


class Dashboard(unittest.TestCase):
    def setUp(self):
        self.board = json.loads(read(DASHBOARD))
        self.panels = [p for p in self.board['panels'] if p['type'] != 'row']
        self.variables = {v['name']: v for v in self.board['templating']['list']}

    def exprs(self):
        for p in self.panels:
            for t in p['targets']:
                yield t['expr']
        for a in self.board['annotations']['list']:
            yield a['expr']

    def expanded(self):
        """Expand the variable for a metric's name to each of its values."""
        for e in self.exprs():
            for o in self.variables['latency']['options']:
                yield e.replace('${latency}', o['value'])

    def test_metrics_are_there(self):
        there = exported()
        self.assertIn('ibscope_load_miss_latency_cycles_bucket', there)
        for e in self.expanded():
            self.assertTrue(named(e), e)
            self.assertEqual(named(e) - there, set(), e)
            self.assertLessEqual(labels_of(e), LABELS, e)
            self.assertFalse(compares_samples(e), e)

    def test_variables(self):
        used = set(re.findall(r'\$\{?([A-Za-z_]\w*)', json.dumps(self.board)))
        self.assertLessEqual(used - {'__rate_interval', '__range', '__all'}, set(self.variables))
        self.assertLessEqual({'namespace', 'pod', 'container'}, set(self.variables))
        for v in self.variables.values():
            if v['type'] == 'query':
                what, label = re.fullmatch(r'label_values\((.*), (\w+)\)', v['definition']).groups()
                self.assertEqual(v['query']['query'], v['definition'])
                self.assertLessEqual(named(what), exported())
                self.assertIn(label, LABELS)

    def test_panels(self):
        ids = [p['id'] for p in self.board['panels']]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for p in self.board['panels']:
            g = p['gridPos']
            cells = {(x, y) for x in range(g['x'], g['x'] + g['w']) for y in range(g['y'], g['y'] + g['h'])}
            self.assertFalse(cells & taken, p['title'])
            self.assertLessEqual(g['x'] + g['w'], 24)
            taken |= cells
        self.assertIn('heatmap', {p['type'] for p in self.panels})

    @unittest.skipUnless(shutil.which('promtool'), 'promtool is not here')
    def test_prometheus_parses_it(self):
        rules = {'groups': [{'name': 'x', 'rules': []}]}
        for i, e in enumerate(self.expanded()):
            e = e.replace('$__rate_interval', '1m').replace('$__range', '1h')
            rules['groups'][0]['rules'].append({'record': f'x{i}', 'expr': e})
        p = subprocess.run(['promtool', 'check', 'rules', '/dev/stdin'], input=json.dumps(rules), capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertIn(f'{len(rules["groups"][0]["rules"])} rules found', p.stdout)

    def check_table(self, title, series, at, rows):
        """A table has these rows, {labels: value}, and no others, with these series."""
        expr, = (p['targets'][0]['expr'] for p in self.panels if p['title'].startswith(title))
        expr = re.sub(r'\$(job|instance|namespace|pod|container)\b', lambda m: {'job': 'ibscope'}.get(m[1], '.*'), expr)
        test = {'expr': f'round({expr.replace("$__range", "1h")}, 0.001)', 'eval_time': at,
                'exp_samples': [{'labels': labels, 'value': value} for labels, value in rows.items()]}
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, 'test.json'), 'w') as f:
                json.dump({'rule_files': [], 'evaluation_interval': '1m', 'tests': [{
                    'interval': '1m', 'input_series': series, 'promql_expr_test': [test]}]}, f)
            p = subprocess.run(['promtool', 'test', 'rules', 'test.json'], cwd=d, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    @unittest.skipUnless(shutil.which('promtool'), 'promtool is not here')
    def test_ranking_says_its_currency(self):
        """Exposed cycles if all machines have them, else miss cycles of all."""
        def series(name, instance, container, values):
            return {'series': f'{name}{{job="ibscope",instance="{instance}",container="{container}"}}', 'values': values}
        miss = [series('ibscope_load_miss_cycles_total', *x) for x in (
            ('a', 'gather', '0+6000x1600'), ('a', 'chase', '0+3000x1600'), ('b', 'chase', '0+600x1600'))]
        ops = [series('ibscope_estimated_ops_total', i, c, '0+600x1600') for i, c in (('a', 'gather'), ('a', 'chase'), ('b', 'chase'))]
        exposed = [series('ibscope_load_exposed_cycles_total', *x) for x in (
            ('a', 'gather', '0+300x1439 431700+600x160'), ('a', 'chase', '0+1200x1600'), ('b', 'chase', '0+600x1600'))]
        unknown = [series('ibscope_load_exposed_unknown_samples_total', 'b', 'chase', '0+6x1600')]

        def check(title, more, **rows):
            self.check_table(title, miss + ops + more, '1560m', {
                f'{{container="{name}",currency="{currency}"}}': value for name, (currency, value) in rows.items()})
        rank, change = 'Containers with most exposed cycles', 'Exposed cycles per op: change'
        check(rank, exposed, chase=('exposed', 30), gather=('exposed', 10))
        check(change, exposed, chase=('exposed', 0), gather=('exposed', 1))
        # machine b lacks those of some samples, or all
        for more in exposed + unknown, exposed[:2]:
            check(rank, more, gather=('miss', 100), chase=('miss', 60))
            check(change, more, chase=('miss', 0), gather=('exposed', 1))
        check(rank, [], gather=('miss', 100), chase=('miss', 60))
        check(change, [], chase=('miss', 0), gather=('miss', 0))
        for p in self.panels:
            exprs = ' '.join(t['expr'] for t in p['targets'])
            self.assertEqual('"currency"' in exprs, 'xposed cycles' in p['title'] and 'miss cycles' in p['title'], p['title'])


if __name__ == '__main__':
    unittest.main()
