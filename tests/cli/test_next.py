# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`Next:` lines: on a terminal each is a command that a shell can run as it is; elsewhere there are none."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

UNIT = os.path.join(ibscope.BUILD, 'tests', 'unit')
HOSTILE = "it's $(touch x); rm -r *.ibs"
MOST = 2
VIEWS = (['report'], ['report', '--by', 'symbol'], ['report', '--by', 'cgroup'], ['report', '--by', 'comm,pid'],
         ['report', '--by', 'cpu'], ['report', '--by', 'type,field'], ['numa'], ['replay'], ['replay', '--by', 'comm'],
         ['replay', '--by', 'src'], ['c2c'])
ENV = {**os.environ, 'IBSCOPE_PAGER': 'cat', 'LC_ALL': 'C.UTF-8', 'NO_COLOR': '1',
       'PATH': os.path.dirname(ibscope.IBSCOPE) + ':' + os.environ['PATH']}

# What a person sees of each command; and the commands with none, and why.
RESULTS = {
    'report': 'report shop.ibs', 'numa': 'numa shop.ibs', 'replay': 'replay shop.ibs', 'c2c': 'c2c lines.ibs',
    'annotate': 'annotate -i code.ibs annotated', 'diff': 'diff shop.ibs samples.ibs', 'dump': 'dump --limit 3 shop.ibs',
    'neighbours': 'neighbours shop.ibs', 'merge': 'merge -o both.ibs shop.ibs samples.ibs', 'export': 'export --perf-data shop.data shop.ibs',
}
LIVE = {'hist': 'hist --source sim -c 1000000 0.2 1',
        'record': 'record --source sim -c 1000000 -o one.ibs -- true'}
NONE = {'top': 'a screen whose keys are the next step; y prints its command',
        'serve': 'a daemon: it prints a log, and no result'}
SCREENS = ['top']    # they end when a person says so
ELSEWHERE = {'doctor': 'test_doctor', 'ctl': 'test_ctl', 'why': 'test_why'}


class Next(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.followed = {}
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        # each program into its own file; code and types are those of copies that do not change
        for name, make in (('shop', ['make_shop', '3000']), ('samples', ['make_recording', '3000']),
                           ('lines', ['make_lines', 'known']), ('code', ['make_annotated']), ('moved', ['make_shop', '30000'])):
            copy = os.path.join(cls.dir.name, make[0])
            shutil.copy(os.path.join(UNIT, make[0]), copy)
            file = os.path.join(cls.dir.name, name + '.ibs')
            subprocess.run([copy, file, *make[1:]], check=True, stdout=subprocess.DEVNULL)

    def shell(self, command):
        """What a command prints on a terminal."""
        p = subprocess.run(['script', '-qec', command, '/dev/null'], cwd=self.dir.name, env=ENV, capture_output=True,
                           text=True, stdin=subprocess.DEVNULL, timeout=60)
        return p.returncode, p.stdout.replace('\r\n', '\n')

    def next_of(self, command):
        status, text = self.shell(command)
        self.assertEqual(status, 0, text)
        self.assertNotIn('ERROR: ', text)
        found = re.findall('^Next: (.*)$', text, re.M)
        self.assertLessEqual(len(found), MOST, text)
        return found

    def follow(self, command, depth=3):
        """Run what is suggested, and what that suggests; once, if several views suggest the same, as the files do not change."""
        known, found = self.followed.get(command, (-1, None))
        if known >= depth:
            return found
        if found is None:
            found = self.next_of(command)
        self.followed[command] = depth, found
        for line in found if depth else ():
            with self.subTest(command=command, line=line):
                self.assertTrue(line.startswith('ibscope '))
                if line.split()[1] in SCREENS:
                    line += ' --once'
                self.follow(line, depth - 1)
        return found

    def test_each_runs(self):
        for name in ('shop', 'samples', 'lines', 'code'):
            for view in VIEWS:
                with self.subTest(name=name, view=view):
                    command = ' '.join(['ibscope', *view, name + '.ibs'])
                    if view != ['c2c'] or name != 'code':    # that needs data addresses
                        found = self.follow(command, 1)
                        self.assertTrue(found, command)

    def test_what(self):
        """They name what the first row shows."""
        self.assertEqual(self.next_of('ibscope report shop.ibs --by container'),
                         ['ibscope report shop.ibs --by symbol,src --container postgres',
                          'ibscope report shop.ibs --by type,field'])
        self.assertEqual(self.next_of('ibscope replay shop.ibs'),
                         ['ibscope report shop.ibs --by symbol,src --container shop/db-0/postgres'])
        found = self.next_of('ibscope c2c lines.ibs')
        self.assertRegex(found[0], '^ibscope c2c lines.ibs --line 0x[0-9a-f]+$')
        self.assertEqual(self.next_of('ibscope report code.ibs --by symbol')[0], 'ibscope annotate -i code.ibs annotated')
        self.assertEqual(self.next_of('ibscope annotate -i code.ibs annotated'),
                         ["ibscope report code.ibs --type 'struct shelf'"])

    def test_every_command(self):
        """Each command of the table ends with a next step, or is listed with the reason why not."""
        text = subprocess.run([ibscope.IBSCOPE, '--help'], capture_output=True, text=True, check=True).stdout
        table = text.split('Commands:\n')[1].split('\n\n')[0]
        names = [line.split()[0] for line in table.splitlines()]
        self.assertEqual(sorted(names), sorted([*RESULTS, *LIVE, *NONE, *ELSEWHERE]))
        for name, command in {**RESULTS, **(LIVE if ibscope.can_bpf()[0] else {})}.items():
            with self.subTest(name=name):
                self.assertTrue(self.follow('ibscope ' + command, 1), command)
                p = subprocess.run([ibscope.IBSCOPE, *command.split()], cwd=self.dir.name, capture_output=True, text=True)
                self.assertNotIn('Next:', p.stdout + p.stderr)
        for name, test in ELSEWHERE.items():
            self.assertTrue(hasattr(self, test), name)

    @unittest.skipUnless(*ibscope.can_bpf())
    def test_why(self):
        pins = '/sys/fs/bpf/ibscope-next-%d' % os.getpid()
        fill = subprocess.Popen([os.path.join(ibscope.BUILD, 'tests/unit/fill_pins'), pins, '1', '3', 'remote'], stdout=subprocess.PIPE)
        self.addCleanup(fill.stdout.close)
        self.addCleanup(fill.wait)
        self.addCleanup(fill.terminate)
        fill.stdout.readline()
        self.assertEqual(self.next_of(f'ibscope why --pin-dir {pins} --duration 10s'),
                         ['ibscope record --container checkout -- sleep 10', 'ibscope numa'])
        # of the same collector
        fill.terminate()
        fill.wait()
        fill = subprocess.Popen([fill.args[0], pins, '1', '3', 'same'], stdout=subprocess.PIPE)
        self.addCleanup(fill.stdout.close)
        self.addCleanup(fill.wait)
        self.addCleanup(fill.terminate)
        fill.stdout.readline()
        self.assertEqual(self.next_of(f'ibscope why --pin-dir {pins} --duration 10s'), [f'ibscope top --pin-dir={pins}'])

    def test_why_of_a_recording(self):
        self.assertEqual(self.next_of('ibscope why -i moved.ibs postgres')[-1:], ['ibscope numa moved.ibs'])
        self.assertEqual(self.next_of('ibscope why -i shop.ibs web'), ['ibscope report --container web --by comm,symbol,src shop.ibs'])

    def test_dump_and_export(self):
        self.assertEqual(self.next_of('ibscope dump --limit 3 shop.ibs'), ['ibscope report shop.ibs'])
        self.assertEqual(self.next_of('ibscope export -o x.data shop.ibs'), ['ibscope report x.data --by symbol,src'])
        self.assertEqual(self.next_of('ibscope export --hwloc x.xml samples.ibs'),
                         ['ibscope report samples.ibs --by cpu,src'])
        for quiet in ('dump --csv shop.ibs', 'dump --json shop.ibs', 'dump --limit 3 shop.ibs | cat',
                      'export -o - shop.ibs >/dev/null', 'cat shop.ibs | ibscope dump --limit 3 -'):
            self.assertEqual(self.next_of(quiet if quiet.startswith('cat') else 'ibscope ' + quiet), [], quiet)

    def test_not_installed(self):
        """Called by a path in the source, commands have that, as a shell would not find the name alone."""
        os.symlink(os.path.dirname(ibscope.IBSCOPE), os.path.join(self.dir.name, 'build'))
        self.assertEqual(self.next_of('build/ibscope report code.ibs --by symbol')[0], 'build/ibscope annotate -i code.ibs annotated')
        self.assertEqual(self.next_of(f'{ibscope.IBSCOPE} report code.ibs --by symbol')[0], 'ibscope annotate -i code.ibs annotated')

    def test_doctor(self):
        found = re.findall('^Next: (.*)$', self.shell('ibscope doctor')[1], re.M)
        self.assertEqual(len(found), int(ibscope.can_bpf()[0]))
        for line in found:
            self.assertIn(line, ('ibscope hist 10 1', 'ibscope hist --source=sim 10 1'))
        self.assertNotIn('Next:', subprocess.run([ibscope.IBSCOPE, 'doctor'], capture_output=True, text=True).stdout)

    @unittest.skipUnless(*ibscope.can_bpf())
    def test_ctl(self):
        """Of a collector: its counters. Those of the snapshot are as hist has them."""
        pins = f'/sys/fs/bpf/ibscope-next-{os.getpid()}'
        collector = ibscope.Collector(pins, '-c', '1000000', '--control', 'none', '--unpin')
        try:
            found = self.next_of(f'ibscope ctl --pin-dir {pins} status')
            self.assertEqual(found, [f'ibscope ctl --pin-dir {pins} snapshot'])
            self.assertTrue(self.next_of(found[0]))
        finally:
            collector.stop()

    def test_merged(self):
        self.assertEqual(self.follow('ibscope merge -o all.ibs shop.ibs samples.ibs', 1),
                         ['ibscope report all.ibs --by rank,host'])
        self.assertEqual(self.next_of('ibscope merge -o - shop.ibs samples.ibs | cat >/dev/null'), [])

    def test_hostile_file(self):
        shutil.copy(os.path.join(self.dir.name, 'code.ibs'), os.path.join(self.dir.name, HOSTILE))
        quoted = HOSTILE.replace("'", "'\\''")
        for view in VIEWS[:-1]:    # c2c needs data addresses
            with self.subTest(view=view):
                self.follow(f"ibscope {' '.join(view)} '{quoted}'", 1)
        self.assertFalse(os.path.exists(os.path.join(self.dir.name, 'x')))
        self.assertTrue(os.path.exists(os.path.join(self.dir.name, 'code.ibs')))

    def test_none(self):
        """Not for what no other command can read again, nor where programs read."""
        self.assertEqual(self.next_of('cat shop.ibs | ibscope report -'), [])
        shutil.copy(os.path.join(self.dir.name, 'shop.ibs'), os.path.join(self.dir.name, 'a\nb'))
        self.assertEqual(self.next_of("ibscope report 'a\nb'"), [])
        for option in ('--json', '--csv', '--markdown'):
            for view in (['report'], ['replay'], ['c2c']):
                if option == '--markdown' and view == ['c2c']:
                    continue
                self.assertEqual(self.next_of(' '.join(['ibscope', *view, option, 'shop.ibs'])), [], (view, option))
        for view in VIEWS:
            p = subprocess.run([ibscope.IBSCOPE, *view, 'shop.ibs'], cwd=self.dir.name, capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stdout.count('Next:'), p.stderr.count('Next:')), (0, 0, 0), p.stderr)

    @unittest.skipUnless(*ibscope.can_bpf())
    def test_live(self):
        found = self.next_of('ibscope hist --source sim -c 1000000 -- true; :')
        self.assertEqual(found[0], 'ibscope hist --source=sim --by comm,src 10 1')  # a command's own cgroup has no name
        self.assertEqual(found[1], 'ibscope top --source=sim')
        self.assertEqual(self.next_of('ibscope c2c --live --source sim -c 1000000 0.5 1'),
                         ['ibscope record --source=sim -a -- sleep 10'])
        self.assertEqual(self.follow('ibscope record --source sim -c 1000000 -o made.ibs -- true', 1),
                         ['ibscope report made.ibs'])


if __name__ == '__main__':
    unittest.main()
