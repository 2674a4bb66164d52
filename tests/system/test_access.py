# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The page and the report for those who do not see them: names and roles as a browser tells them, and axe-core."""
import functools
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import browser
import ibscope
import npm
import test_exporter
import test_html

AXE = 'axe-core@4.10.3'
LEVELS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
FIND = '''axe.run(document, { runOnly: { type: 'tag', values: %s } }).then(r => [r.passes.length, r.violations.map(v =>
    v.id + ': ' + v.nodes.slice(0, 3).map(n => n.target + ' ' + n.failureSummary).join('; '))])''' % LEVELS
OPERATED = {'button', 'link', 'combobox', 'textbox', 'searchbox', 'checkbox'}
# Texts of neighbours in a table that touch, as "a / b"
TOUCHING = """JSON.stringify([...document.querySelectorAll('tr')].flatMap(tr => {
    const all = [...tr.cells].filter(e => e.offsetWidth).map(e => (r => (r.selectNodeContents(e), [e.textContent, r.getBoundingClientRect()]))(document.createRange()));
    return all.slice(1).map(([b, q], i) => [...all[i], b, q]).filter(([a, r, b, q]) => a && b && r.width && q.width && r.right > q.left - 1).map(([a, , b]) => `${a} / ${b}`);
}))"""
READY = "document.body?.dataset.ready === 'yes'"
axe = None


def read_axe():
    """Its text, or the test is skipped."""
    global axe
    if not axe:
        with tempfile.TemporaryDirectory() as d, open(npm.unpack(AXE, d) + '/axe.min.js', encoding='utf-8') as f:
            axe = f.read() + '; 0'
    return axe


class Case(unittest.TestCase):
    def at_each_size(self, url, ready, check, sizes=((1400, 'light'), (1400, 'dark'), (390, 'light'), (390, 'dark'))):
        """A desk and a phone, light and dark."""
        for width, theme in sizes:
            with self.subTest(width=width, theme=theme), browser.browse().page() as b:
                b.size(width, 900)
                b.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': theme}])
                b.open(url)
                b.until(ready)
                check(b)

    def check_names(self, b):
        """What can be operated has a name, and there is one main heading."""
        nodes = [n for n in b.call('Accessibility.getFullAXTree')['nodes'] if not n['ignored']]
        of = [(n['role']['value'], n.get('name', {}).get('value', '')) for n in nodes]
        self.assertGreater(sum(role in OPERATED for role, _ in of), 10)
        self.assertEqual([role for role, name in of if role in OPERATED and not name.strip()], [])
        self.assertEqual(b.js("document.querySelectorAll('h1').length"), 1)

    def check_axe(self, b):
        b.js(read_axe())
        passed, violations = b.js(FIND)
        self.assertFalse(violations, '\n'.join(violations))
        self.assertGreater(passed, 15)


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Report(test_html.Page, Case):
    @classmethod
    def setUpClass(cls):
        cls.make(test_html.MAKE, 'stacks')

    def test_names(self):
        self.at_each_size(f'file://{self.html}', READY, self.check_names)

    def test_axe(self):
        read_axe()
        self.at_each_size(f'file://{self.html}', READY, self.check_axe)

    def test_finds(self):
        """What is wrong is found."""
        with browser.browse().page() as b:
            b.open(f'file://{self.html}')
            b.until(READY)
            b.js("""const button = [...document.querySelectorAll('button')].find(e => e.offsetParent);
                button.textContent = '';
                button.removeAttribute('title');
                button.removeAttribute('aria-label');
                document.documentElement.removeAttribute('lang')""")
            with self.assertRaisesRegex(AssertionError, 'button'):
                self.check_names(b)
            with self.assertRaisesRegex(AssertionError, 'html-has-lang'):
                self.check_axe(b)


@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Pages(Case):
    """The other pages: tables, which scroll by themselves where they are wider than a phone."""
    @classmethod
    def setUpClass(cls):
        d = tempfile.TemporaryDirectory()
        cls.addClassCleanup(d.cleanup)
        at, unit = functools.partial(os.path.join, d.name), os.path.join(ibscope.BUILD, 'tests', 'unit')
        for make in ('make_shop', 'shop', '3000'), ('make_recording', 'samples', '3000'), ('make_annotated', 'code'):
            subprocess.run([os.path.join(unit, make[0]), at(make[1]), *make[2:]], check=True, stdout=subprocess.DEVNULL)
        commands = {'diff': ('diff', at('shop'), at('samples'), '--html', at('diff.html')),
                    'annotate': ('annotate', '-i', at('code'), 'annotated', '--html', at('annotate.html')),
                    'top': ('top', '-i', at('shop'), '--once', '--html')}
        cls.pages = []
        for name, command in commands.items():
            p = ibscope.run(*command)
            assert not p.returncode, p.stderr
            if p.stdout:
                with open(at(name + '.html'), 'w', encoding='utf-8') as f:
                    f.write(p.stdout)
            cls.pages.append('file://' + at(name + '.html'))

    def each(self, check, *sizes):
        for url in self.pages:
            with self.subTest(page=url.rpartition('/')[2]):
                self.at_each_size(url, "document.readyState === 'complete' && !!document.body", check, sizes)

    def test_fits(self):
        def check(b):
            self.assertLessEqual(b.js('document.documentElement.scrollWidth - innerWidth'), 0)
            self.assertGreater(b.js("Math.min(...[...document.querySelectorAll('table, pre')].map(e => e.offsetWidth))"), 100)
        self.each(check, (390, 'light'))

    def test_axe(self):
        read_axe()
        self.each(self.check_axe, (1400, 'light'), (390, 'dark'))


@unittest.skipUnless(test_exporter.OK, f'no BPF here: {test_exporter.WHY}')
@unittest.skipUnless(shutil.which('chromium'), 'chromium is not installed')
class Live(test_exporter.Collected, Case):
    ARGS = ('-e', 'ibs_op//,ibs_fetch//')

    def look(self, check, *sizes):
        e = self.start(test_exporter.Exporter)
        self.until(lambda: e.get('/-/ready')[0] == 200)
        self.at_each_size(e.url + '/', "document.body && document.querySelectorAll('#rows tbody tr').length > 1 && document.querySelectorAll('#sources tbody tr').length > 3",
                          check, *(sizes and [sizes]))

    def test_names(self):
        self.look(self.check_names)

    def test_fits(self):
        """No text of a table touches that of the next column, and nothing is wider than the page."""
        def check(b):
            self.assertEqual(json.loads(b.js(TOUCHING)), [])
            self.assertLessEqual(b.js('document.documentElement.scrollWidth - innerWidth'), 0)
            self.assertGreater(b.js("document.querySelectorAll('#sources tbody tr').length"), 3)
        self.look(check, (1400, 'light'), (1280, 'light'), (800, 'dark'), (390, 'light'))

    def test_axe(self):
        read_axe()
        self.look(self.check_axe)


if __name__ == '__main__':
    unittest.main()
