# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every ibscope command of ibscope-from-perf(7) and -toolkit(7) is run: on a recording, or with --explain of a machine;
tests/vm/pages.py runs the latter on the emulated hardware."""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
MAKE = os.path.join(ibscope.BUILD, 'tests', 'unit', 'make_recording')
PERF_DATA = {'perf.data': '6.12-zen4-mem.data.zst', 'fetch.data': '6.12-zen4-opfetch.data.zst'}
# What the toolkit's driver, its tools, and Mitos take.
IOCTLS = '''
    IBS_ENABLE IBS_DISABLE SET_CUR_CNT GET_CUR_CNT SET_CNT GET_CNT SET_MAX_CNT GET_MAX_CNT SET_CNT_CTL GET_CNT_CTL
    SET_RAND_EN GET_RAND_EN SET_POLL_SIZE GET_POLL_SIZE SET_BUFFER_SIZE GET_BUFFER_SIZE RESET_BUFFER GET_LOST
    DEBUG_BUFFER FIONREAD'''.split()
OPTIONS = {
    'ibs_monitor': '''-o --op_file -f --fetch_file -l --library_map -r --op_sample_rate -s --fetch_sample_rate
        -b --buffer_size -p --poll_percent -t --poll_timeout -w --working_dir''',
    'ibs_decoder': '-i --op_in_file -o --op_out_file -f --fetch_in_file -g --fetch_out_file',
    'ibs_run_and_annotate': '''-l --lookup -o --op_sample -f --fetch_sample -t --temp_dir --op_sample_file
        --fetch_sample_file --op_csv --fetch_csv --ld_debug_file -d --out_dir --op_output --fetch_output -w
        --working_dir --timer''',
    'ibs_daemon': '-o --op_file -w --working_dir',
    'mitosrun': '-b -p -t -f -s -l',
}


def writes_file(line):
    """Those that write a file."""
    return line.startswith(('ibscope export', 'ibscope merge'))


def lines(page):
    with open(page) as f:
        return re.findall(r'^\.Dl (.*)$', f.read(), re.M)


class Pages(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        subprocess.run([MAKE, 'ibscope.data', '2000', 'stacks'], cwd=self.dir.name, check=True)
        for name, data in PERF_DATA.items():
            with open(os.path.join(self.dir.name, name), 'wb') as f:
                subprocess.run(['zstd', '-dc', os.path.join(TOP, 'tests', 'data', 'perf', data)], stdout=f, check=True)

    def run_line(self, line):
        words = shlex.split(line)
        env = os.environ | {'NO_COLOR': '1'}
        if words[0] == 'mpirun':
            words = words[1:]
            env |= {'PMI_RANK': '0', 'PMI_SIZE': '1', 'MPI_LOCALRANKID': '0', 'MPI_LOCALNRANKS': '1'}
        self.assertEqual(words[0], 'ibscope')
        if words[1] in ('record', 'hist'):  # a plan needs no IBS: what is in `--explain` was parsed and resolved
            words = [{'COMMAND': 'true', 'PID': str(os.getpid())}.get(w, w) for w in words]
            words.insert(2, '--explain=zen4:6.12')
        return subprocess.run([ibscope.IBSCOPE, *words[1:]], cwd=self.dir.name, env=env, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60)

    def test_lines(self):
        pages = glob.glob(os.path.join(TOP, 'tools', 'man', 'ibscope-from-*.7'))
        self.assertTrue(pages)
        for page in pages:
            self.assertGreater(len(lines(page)), 20)
            for line in lines(page):
                with self.subTest(line):
                    p = self.run_line(line)
                    self.assertEqual(p.returncode, 0, p.stderr)
                    self.assertTrue(p.stdout or writes_file(line))
                    self.assertNotIn('no sample is selected', p.stderr)

    def test_all_of_the_toolkit(self):
        """No ioctl and no option is forgotten."""
        with open(os.path.join(TOP, 'tools', 'man', 'ibscope-from-toolkit.7')) as f:
            text = f.read()
        words = set(re.findall(r'[A-Z]+(?:_[A-Z]+)*', text))
        self.assertLessEqual(set(IOCTLS), words)
        for tool, options in OPTIONS.items():
            entries = ' '.join(re.findall(rf'^\.It {tool} (.*)$', text, re.M))
            self.assertLessEqual(set(options.split()), set(re.split(r'[ ,]+', entries)), tool)

    def test_a_wrong_line_fails(self):
        self.assertNotEqual(self.run_line('ibscope record --no-such -- COMMAND').returncode, 0)
        self.assertNotEqual(self.run_line('ibscope report --by nothing').returncode, 0)


if __name__ == '__main__':
    unittest.main()
