# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`hist` and `record -- COMMAND` at a terminal: who gets ^C, ^Z and what is typed."""
import glob
import os
import pty
import select
import shutil
import signal
import tempfile
import unittest

from ibscope import IBSCOPE, can_bpf, until

OK, WHY = can_bpf()
HIST = f'{IBSCOPE} hist --json --source sim'


@unittest.skipUnless(OK, f'no BPF here: {WHY}')
@unittest.skipUnless(shutil.which('bash'), 'no bash, whose job control is needed')
class CommandTerminal(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.shell, self.tty = pty.fork()
        if not self.shell:
            os.chdir(self.dir)
            # who runs the tests may ignore them, as a script's background jobs do
            for sig in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:
                signal.signal(sig, signal.SIG_DFL)
            os.execvp('bash', ['bash', '--norc', '--noprofile', '-i'])
        self.text = b''
        self.addCleanup(self.hang_up)

    def hang_up(self):
        for path in glob.glob(self.dir + '/*.pid'):
            pid = self.has(os.path.basename(path))
            try:
                if os.readlink(f'/proc/{pid}/cwd') == self.dir:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
        os.kill(self.shell, signal.SIGKILL)
        os.close(self.tty)
        os.waitpid(self.shell, 0)

    def type(self, text):
        os.write(self.tty, text.encode())

    def until(self, condition):
        def met():
            if select.select([self.tty], [], [], 0)[0]:
                self.text += os.read(self.tty, 65536)
            return condition()
        try:
            until(met)
        except AssertionError:
            self.fail(self.text.decode(errors='replace'))

    def has(self, name):
        try:
            with open(f'{self.dir}/{name}') as f:
                return f.read().strip()
        except FileNotFoundError:
            return ''

    def start(self, program, script, tail=''):
        """SCRIPT in sh, as the command of @program; `started` is there once it runs."""
        with open(f'{self.dir}/script', 'w') as f:
            f.write(f'echo $$ >command.pid; echo $PPID >ibscope.pid; echo 1 >started\n{script}\n')
        self.type(f'{program} -- sh script{tail}\n' if tail else f'{program} -- sh script; echo $? >status\n')
        self.until(lambda: self.has('started'))

    def states(self):
        out = set()
        for name in 'ibscope.pid', 'command.pid':
            with open(f'/proc/{self.has(name)}/stat') as f:
                out.add(f.read().rpartition(')')[2].split()[0])
        return out

    def interrupt_once(self, program):
        self.start(program, 'until [ -e go ]; do sleep 0.1; done; exit 7')
        self.type('\x03')

    def test_first_interrupt(self):
        """The output ends, the command does not."""
        self.interrupt_once(HIST + ' >out')
        self.until(lambda: self.has('out'))
        self.assertNotIn('Z', self.states())
        self.assertFalse(self.has('status'))
        open(f'{self.dir}/go', 'w').close()
        self.until(lambda: self.has('status'))
        self.assertEqual(self.has('status'), '7')
        self.assertEqual(len(self.has('out').splitlines()), 1)

    def test_first_interrupt_of_record(self):
        self.interrupt_once(f'{IBSCOPE} record --source sim -o data')
        self.until(lambda: b'seen ' in self.text)
        self.assertFalse(self.has('status'))
        open(f'{self.dir}/go', 'w').close()
        self.until(lambda: self.has('status'))
        self.assertEqual(self.has('status'), '7')

    def test_second_interrupt(self):
        """It reaches the command, and what the command waits for."""
        for program in HIST + ' >out', f'{IBSCOPE} record --source sim -o data':
            for name in 'out', 'status', 'started', 'got':
                if os.path.exists(f'{self.dir}/{name}'):
                    os.unlink(f'{self.dir}/{name}')
            self.text = b''
            self.start(program, "trap 'echo 1 >got; exit 9' INT; sleep 600")
            self.type('\x03')
            self.until(lambda: self.has('out') or b'seen ' in self.text)
            self.assertFalse(self.has('got'))
            self.type('\x03')
            self.until(lambda: self.has('status'))
            self.assertEqual((self.has('got'), self.has('status')), ('1', '9'))

    def test_reads_the_terminal(self):
        self.start(HIST + ' >out', 'read x; echo $x >got; stty -echo; stty echo; read x; exit 5')
        self.type('hello\n')
        self.until(lambda: self.has('got') == 'hello')
        # the terminal is the command's now, and so is ^C
        self.type('\x03')
        self.until(lambda: self.has('status'))
        self.assertEqual(self.has('status'), '130')
        self.assertEqual(len(self.has('out').splitlines()), 1)
        # and the shell has it back
        self.type('echo $((40 + 2)) >back\n')
        self.until(lambda: self.has('back') == '42')

    def test_stop_and_continue(self):
        """^Z and fg, bg, for both together."""
        # not with other programs: between vfork() and exec of one that was stopped, a shell cannot stop
        os.mkfifo(f'{self.dir}/go')
        self.start(HIST + ' >out', 'read x <go; exit 7')
        for command in 'fg', 'bg':
            self.type('\x1a')
            self.until(lambda: self.states() == {'T'})
            self.type(command + '\n')
            self.until(lambda: 'T' not in self.states())
        with open(f'{self.dir}/go', 'w', encoding='ascii') as f:
            f.write('1\n')
        self.until(lambda: self.has('out'))

    def test_stop_what_has_the_terminal(self):
        self.start(HIST + ' >out', 'read a; echo 1 >read; read b; echo $a$b >got')
        self.type('x\n')
        self.until(lambda: self.has('read'))
        self.type('\x1a')
        self.until(lambda: self.states() == {'T'})
        self.type('echo 1 >shell\n')
        self.until(lambda: self.has('shell'))
        self.type('fg\n')
        self.until(lambda: 'T' not in self.states())
        self.type('y\n')
        self.until(lambda: self.has('got') == 'xy')

    def test_reads_from_the_background(self):
        """As every job it waits for fg."""
        self.start(HIST + ' >out', 'read a; echo $a >got', tail=' &')
        self.until(lambda: self.states() == {'T'})
        self.type('fg\n')
        self.until(lambda: 'T' not in self.states())
        self.type('z\n')
        self.until(lambda: self.has('got') == 'z')

    def test_quit(self):
        self.start(HIST + ' >out', "trap 'echo 1 >got; exit 3' QUIT; ulimit -c 0; echo 1 >ready; "
                   "while :; do sleep 0.1; done")
        self.until(lambda: self.has('ready'))
        self.type('\x1c')
        self.until(lambda: self.has('got'))
        self.until(lambda: self.has('status') == str(128 + signal.SIGQUIT))


if __name__ == '__main__':
    unittest.main()
