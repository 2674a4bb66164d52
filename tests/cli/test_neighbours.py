"""ibscope neighbours on recordings whose coupling is known."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'system'))
import ibscope  # noqa: E402

MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_neighbours')


class Neighbours(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        d = tempfile.TemporaryDirectory(prefix='ibscope-neighbours-')
        cls.addClassCleanup(d.cleanup)
        cls.file = {}
        for kind in 'coupled', 'quiet', 'short':
            cls.file[kind] = os.path.join(d.name, kind)
            subprocess.run([MAKE, cls.file[kind], kind, '1'], check=True)

    def run_on(self, kind, *args):
        p = ibscope.run('neighbours', self.file[kind], *args)
        self.assertEqual((p.returncode, p.stderr), (0, ''))
        return p.stdout

    def test_names_only_the_culprit(self):
        out = json.loads(self.run_on('coupled', '--json'))
        self.assertTrue(out['simulated'])
        [pair] = out['pairs']
        self.assertEqual((pair['ccx'], pair['victim'], pair['suspect']), (1, 'web', 'batch'))
        self.assertGreater(pair['latency'], 1.5 * pair['baseline'])
        self.assertGreaterEqual(pair['runs'], 2)
        self.assertLess(pair['chance'], 1e-6)

    def test_text_and_csv_agree(self):
        text = self.run_on('coupled')
        self.assertRegex(text, r'(?m)^   1  web +batch +[0-9]+ ')
        head, row = self.run_on('coupled', '--csv').splitlines()
        self.assertEqual(dict(zip(head.split(','), row.split(',')))['suspect'], 'batch')
        self.assertEqual(text, ibscope.run('neighbours', '-i', self.file['coupled']).stdout)

    def test_nobody_in_quiet_hours(self):
        self.assertIn('no container is shown to slow another one', self.run_on('quiet'))
        self.assertEqual(json.loads(self.run_on('quiet', '--json'))['pairs'], [])

    def test_says_what_would_do(self):
        self.assertIn('5 s are too few to judge: at least 20', self.run_on('short'))

    def test_selection(self):
        out = json.loads(self.run_on('coupled', '--json', '--container', 'web'))
        self.assertEqual((out['pairs'], out['containers']), ([], 1))

    def test_hostile_name(self):
        name = '=\x1b[31m\nibscope: "x",'
        path = self.file['coupled'] + '-name'
        subprocess.run([MAKE, path, 'coupled', '1', name], check=True)
        out = {how: ibscope.run('neighbours', path, *how).stdout for how in ((), ('--csv',), ('--json',))}
        self.assertEqual(json.loads(out['--json',])['pairs'][0]['victim'].replace('\\x1b', '\x1b').replace('\\x0a', '\n'), name)
        for text in out.values():
            self.assertNotIn('\x1b', text)
            self.assertNotIn('\nibscope', text)
        self.assertEqual(len(out[()].splitlines()), 3)
        self.assertNotIn(',=', out['--csv',])

    def test_refusals(self):
        for args in ((self.file['quiet'], 'x'), ('--duration', '0'), ('--pin-dir', '/nowhere')):
            p = ibscope.run('neighbours', *args)
            self.assertNotEqual(p.returncode, 0, args)
            self.assertTrue(p.stderr, args)


if __name__ == '__main__':
    unittest.main()
