# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In a PID namespace, as in a container without --pid=host: ids are those of the namespace."""
import collections
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import ibscope

OK, WHY = ibscope.can_bpf()
SIM = '--source sim --sim-ops random -c 200000'
SAID = 'this is not the host\'s PID namespace'
LOOP = 'import os\nopen({file!r}, "w").write(str(os.getpid()))\nif {fork}: os.fork()\nwhile True: pass\n'


@unittest.skipUnless(OK, f'no BPF on this machine: {WHY}')
class Namespace(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='ibscope-pidns.')
        self.addCleanup(shutil.rmtree, self.dir)
        ibscope.keep_busy(self)     # outside of the namespace

    def inside(self, script, **kw):
        """Run a shell script as the first process of a namespace; $I is the program, `loop` a process that runs for ever."""
        head = 'loop() { rm -f pid; python3 -c "$(cat $1)" & while ! [ -s pid ]; do sleep 0.05; done; }\n'
        for name, fork in ('alone', False), ('forks', True):
            with open(os.path.join(self.dir, name), 'w') as f:
                f.write(LOOP.format(file='pid', fork=fork))
        p = subprocess.run(['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-ec', head + script], cwd=self.dir,
                           capture_output=True, text=True, timeout=60, env={**os.environ, 'I': ibscope.IBSCOPE}, **kw)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p

    def pids(self, stdout, least=1):
        """Processes with samples, from the output of hist."""
        found = collections.Counter()
        for s in json.loads(stdout)['series']:
            found[int(s['labels']['pid'])] += s['samples']
        return {pid for pid, n in found.items() if n >= least}

    def test_selection_and_labels(self):
        """A process selected by its id in the namespace is sampled, with its children and under that id."""
        p = self.inside(f'loop alone; $I hist {SIM} --json --by pid,comm -p $(cat pid) 2 1; echo; cat pid')
        pid = int(p.stdout.split()[-1])
        self.assertLess(pid, 100)
        self.assertIn(SAID, p.stderr)
        self.assertEqual(self.pids(p.stdout.rsplit('\n', 1)[0]), {pid})
        # children born later are in the set as well: hist with a command, but no cgroup for it
        p = self.inside(f'$I hist {SIM} --json --by pid -- python3 -c "import os, time\nos.fork()\nend = time.process_time() + 1\n'
                        'while time.process_time() < end: pass"')
        found = self.pids(p.stdout, 20)
        self.assertEqual((len(found), min(found) > 0), (2, True), found)

    def test_followed(self):
        p = self.inside(f'($I hist {SIM} --json --by pid --follow -p $$ 5 1 > out) & hist=$!; sleep 1.5; loop forks; wait $hist; cat out')
        found = self.pids(p.stdout, 20)
        self.assertGreaterEqual(len(found), 2, p.stdout)
        self.assertLess(max(found), 100)

    def test_recording(self):
        """Samples and mappings have the same ids; processes outside have none, and one name."""
        p = self.inside(f'loop alone; $I record --source sim -c 500000 -a --duration 2 -o rec; $I report --json --limit 1000 --by pid,comm,dso rec; cat pid')
        pid = int(p.stdout.split()[-1])
        self.assertIn(SAID, p.stderr)
        rows = [r['labels'] for r in json.loads(p.stdout[:p.stdout.rindex('}') + 1])['rows'] if r['labels']]
        own = [r for r in rows if r['pid'] == str(pid)]
        self.assertTrue(any(r['comm'].startswith('python3') and 'python3' in (r['dso'] or '') for r in own), rows)
        self.assertEqual({r['comm'] for r in rows if r['pid'] == '0'}, {'[outside]'})
        self.assertLess(max(int(r['pid']) for r in rows), 100)

    def test_doctor(self):
        p = subprocess.run(['unshare', '--pid', '--fork', '--mount-proc', ibscope.IBSCOPE, 'doctor'], capture_output=True, text=True)
        self.assertRegex(p.stdout, r'PID namespace +another one')
        self.assertIn('--pid=host', p.stdout)
        initial = os.stat('/proc/self/ns/pid').st_ino == 0xEFFFFFFC     # PROC_PID_INIT_INO
        p = subprocess.run([ibscope.IBSCOPE, 'doctor'], capture_output=True, text=True)
        self.assertRegex(p.stdout, r'PID namespace +' + ('the initial one' if initial else 'another one'))


if __name__ == '__main__':
    unittest.main()
