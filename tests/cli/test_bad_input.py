# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bad input: one line that says what, why and what to do; the right exit status; no output."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'system'))
import ibscope  # noqa: E402
from ibscope import run  # noqa: E402

SIM = ('--source', 'sim')
FETCH = (*SIM, '-e', 'ibs_fetch//')
BOTH = (*SIM, '-e', 'ibs_op//,ibs_fetch//')

# arguments, exit status, what the message must name
USAGE = [
    (['frobnicate'], "unknown command 'frobnicate'; see"),
    (['hsit'], "unknown command 'hsit'; did you mean 'hist'?"),
    (['--frobnicate'], "unknown option '--frobnicate'"),
    (['help', 'recrod'], "did you mean 'record'?"),
    (['hist', '--nonsense'], "unknown option '--nonsense'; see --help"),
    (['hist', '--contaner', 'x'], "unknown option '--contaner'; did you mean '--container'?"),
    (['hist', '--contaner=x'], "unknown option '--contaner'; did you mean '--container'?"),
    (['hist', '--json=x'], "option '--json' takes no value"),
    (['hist', '--help=x'], "option '--help' takes no value"),
    (['hist', '--m', '3'], "ambiguous option '--m': could be --metric, --max-groups, --max-memory, --min-lat"),
    (['hist', '-Z'], "unknown option '-Z'"),
    (['hist', '--json', '-vZ'], "unknown option '-Z'"),
    (['hist', '--min-lat'], "'--min-lat' needs a value"),
    (['serve', '--grase', '3'], "did you mean '--grace'?"),
    (['doctor', '--jsn'], "did you mean '--json'?"),
    (['hist', *SIM, 'ls'], "unexpected argument 'ls'; to measure a command, put it after '--'"),
    (['hist', *SIM, '1', 'sleep', '3'], "unexpected argument 'sleep'"),
    (['top', *SIM, 'ls'], "unexpected argument 'ls': there is no recording of that name; to measure a command, use ibscope hist -- COMMAND"),
    (['record', *SIM, 'ls'], "ibscope record [OPTIONS] -- ls"),
    (['hist', '-c'], "'-c' needs a value"),
    (['hist', '-e', 'cycles'], 'ibs_op'),
    (['hist', '-e', 'ibs_op/cnt_ctl=1'], 'closing /'),
    (['hist', '-e', 'ibs_op/,/'], 'column 8'),
    (['hist', *SIM, '-e', 'ibs_op/ldlat=256/'], 'ldlat'),
    (['hist', *SIM, '-c', '0'], '-c (period): invalid period 0: must be from 10000'),
    (['hist', '--source', 'ibs', '-c', '0'], '-c (period): invalid period 0: must be a multiple of 16 from '),
    (['hist', '--source', 'ibs', '-c', '17'], '-c (period): period 17 is too short for ibs_op: must be a multiple of 16 from '),
    (['hist', '--source', 'ibs', '-c', '1001'], '-c (period): period 1001 is not a multiple of 16'),
    (['hist', *SIM, '-F', '0'], '-F (freq): invalid frequency 0: must be from 1 to '),
    (['hist', '-c', 'abc'], "-c (period): invalid number 'abc': must be a multiple of 16 from 16 to "),
    (['hist', *SIM, '-c', '1'], '10000'),
    (['hist', *SIM, '-c', '99999999999999999999'], '-c'),
    (['hist', *SIM, '-c', 'ten'], "-c (period): invalid number 'ten': must be from 10000 to 2^40 ns in the simulation"),
    (['hist', '-c', 'ten', '--sim-event', 'faults', '--source', 'sim'], "'ten': must be from 16 to 2^40 page faults"),
    (['hist', *SIM, '-c', ''], "-c (period): invalid number '': must be from 10000"),
    (['hist', *SIM, '-F', '0'], 'Hz'),
    (['hist', *SIM, '-c', '100000', '-F', '100'], 'exclusive'),
    (['hist', *SIM, '-C', '9999'], '9999'),
    (['hist', *SIM, '-C', '3-1'], '3-1'),
    (['hist', *SIM, '-C', ''], '-C'),
    (['hist', *SIM, '-p', '0'], '-p'),
    (['hist', *SIM, '-p', 'x'], "'x'"),
    (['hist', *SIM, '-p', '1,x'], "'x'"),
    (['hist', *SIM, '-p', '1', '-p', '!2'], 'not both'),
    (['hist', *SIM, '-t', '!2'], 'cannot be excluded'),
    (['hist', *SIM, '--comm', 'sixteen-bytes-xx'], '15'),
    (['hist', *SIM, '--comm', 'a,,b'], '15'),
    (['hist', *SIM, '--comm', 'a,b,c,d,e,f,g,h,i'], '8'),
    (['hist', *SIM, '--op', '!load,store,locked,prefetch,branch,other'], 'excludes everything'),
    (['hist', *SIM, '--src', 'l2,drm'], "--src: column 4: unknown source 'drm'; did you mean 'dram'?"),
    (['hist', *SIM, '--src', ''], 'dram'),
    (['hist', *SIM, '--op', 'lode'], 'load'),
    (['hist', *SIM, '--metric', 'x'], 'dc_miss_lat'),
    (['hist', *SIM, '--metric', 'fetch_lat'], 'use -e ibs_fetch//'),
    (['hist', *SIM, '--by', 'itlb'], 'use src or op'),
    (['hist', *FETCH, '--by', 'src'], 'use fetch or itlb'),
    (['hist', *FETCH, '--metric', 'tag_to_ret'], 'use fetch_lat or itlb_refill_lat'),
    (['hist', *FETCH, '--src', 'dram'], "--src: samples of ibs_fetch do not have that; use --filter 'fetch == ..'"),
    (['hist', *FETCH, '--op', 'load'], '--op: samples of ibs_fetch'),
    (['hist', *FETCH, '--filter', 'fetch == unknown'], "'unknown' means that there is no fetch"),
    (['hist', *FETCH, '--filter', 'mem_lvl == ram'], "'mem_lvl' is a term of ibs_op, but the event is ibs_fetch"),
    (['hist', *SIM, '--filter', 'oc_miss'], "'oc_miss' is a term of ibs_fetch, but the event is ibs_op"),
    (['hist', *FETCH, '--remote-node', 'yes'], "--remote-node: column 1: 'rmt_node' is a term of ibs_op"),
    (['hist', *FETCH, '--html', '/tmp/x'], '--html'),
    (['hist', '--source', 'sim', '-e', 'ibs_fetch/cnt_ctl=1/'], "the simulation has no 'cnt_ctl'"),
    (['record', *BOTH, '--csv'], 'two events have different columns: use --json'),
    (['numa', '--live', *FETCH], '--op: samples of ibs_fetch'),
    (['top', *BOTH, '--once'], 'at most one event'),
    (['serve', *BOTH, '-c', '16,16,16'], '-c: 3 periods, but 2 events'),
    (['serve', *BOTH, '--src', 'dram'], '--src: samples of ibs_fetch'),
    (['serve', *BOTH, '--filter', 'mem_lvl == ram'], "'mem_lvl' is a term of ibs_op, but the event is ibs_fetch"),
    (['serve', *SIM, '-e', 'ibs_op//', '-e', 'ibs_op/cnt_ctl=1/'], 'two events of ibs_op'),
    (['serve', *SIM, '-e', 'ibs_op//,ibs_fetch//,cycles'], 'at most two events'),
    (['serve', *SIM, '-e', 'ibs_op//,cycles'], "unknown event 'cycles'"),
    (['serve', *BOTH, '-F', '100', '--max-overhead', '1%'], '--max-overhead changes the period'),
    (['ctl', '-e', 'cycles', 'ledger'], "event 'cycles'"),
    # also without a collector
    (['ctl', '--control', '/nonexistent', 'set', 'period=abc'], "-c (period): invalid number 'abc'"),
    (['ctl', '--control', '/nonexistent', 'set', 'grace=3', 'perod=5'], "unknown option 'perod'; did you mean 'period'?"),
    (['top', '--once', '--json'], 'top has no --json: `ibscope hist --json 2 1` prints one interval'),
    (['ctl', '--control', '/nonexistent', 'set', 'frobnicate=5'], "unknown option 'frobnicate'; `ibscope serve --help` lists them"),
    (['ctl', '--control', '/nonexistent', 'set', 'pin-dir=x'], "'pin-dir' cannot be set live"),
    (['ctl', '--control', '/nonexistent', 'set', 'by=container', 'hot-lines=1'], "'hot-lines' cannot be set live"),
    (['ctl', '-e', 'ibs_op', 'status'], 'status is the same for all events'),
    (['serve', *FETCH, '--push', 'http://a:1'], 'profiles consist of ibs_op samples; ibs_fetch samples'),
    (['serve', *FETCH, '--src', 'dram'], '--src: samples of ibs_fetch'),
    (['hist', *SIM, '-e', 'ibs_op//,ibs_op/cnt_ctl=1/'], 'two events of ibs_op'),
    (['hist', *SIM, '-e', 'ibs_op//,ibs_dc//'], "unknown event 'ibs_dc'"),
    (['hist', *SIM, '-e', 'ibs_op//,ibs_fetch//,ibs_op//'], 'at most two events'),
    (['hist', *SIM, '-e', 'ibs_op//,'], "unknown event ''"),
    (['hist', *SIM, '-c', '100000,200000'], '-c: 2 periods, but 1 event'),
    (['hist', *BOTH, '-c', '100000,200000,300000'], '-c: 3 periods, but 2 events'),
    (['hist', *BOTH, '-c', '100000,x'], "'x'"),
    (['hist', *BOTH, '--op', 'load'], '--op: samples of ibs_fetch'),
    (['hist', *BOTH, '--csv'], 'use --json'),
    (['hist', *SIM, '--metric', 'dc_miss_lat,tag_to_ret'], 'must be one of dc_miss_lat'),
    (['hist', *SIM, '--by', 'cgrp'], "unknown key 'cgrp'; did you mean 'cgroup'?"),
    (['hist', *SIM, '--by', 'pid,containers'], "column 5: unknown key 'containers'; did you mean 'container'?"),
    (['report', '--by', 'sybmol', 'x'], "did you mean 'symbol'?"),
    (['report', '--columns', 'samples,p98', 'x'], "unknown column 'p98'"),
    (['hist', *SIM, '--min-lat', '70000'], '65535'),
    (['hist', *SIM, '--min-lat', '300', '--max-lat', '200'], 'above'),
    (['hist', *SIM, '--cgroup', ','], 'no cgroup'),
    (['hist', *SIM, '--cgroup-hierarchy', 'v3'], "--cgroup-hierarchy: unknown or unmounted hierarchy 'v3'"),
    (['hist', *SIM, '--filter', 'mem_lvl == ramm'], "column 12: invalid value 'ramm'"),
    (['hist', *SIM, '--filter', 'mem_lvl == ram &&'], 'column'),
    (['hist', *SIM, '--filter', ''], 'column'),
    (['hist', *SIM, '--container', ','], 'no container'),
    (['hist', *SIM, '--container', 'a b'], "'a b'"),
    (['hist', *SIM, '--container', 'a/b/c/d'], 'NAMESPACE/POD/CONTAINER'),
    (['hist', *SIM, '--container', 'web:70000'], '65535'),
    (['hist', '--explain=zen9:6.12'], "unknown machine 'zen9:6.12': must be GENERATION:KERNEL"),
    (['hist', '--explain=zen4:6.12', '-e', 'ibs_fetch//', '-c', '1048576'], 'period 1048576 is more than ibs_fetch'),
    (['serve', '--explain=zen4:6.12', '-e', 'ibs_op//,ibs_fetch//', '-c', '1048576'], 'period 1048576 is more than ibs_fetch'),
    (['record', '--explain=zen1:5.10', '-e', 'ibs_fetch/period=100/'], 'column 11: period 100 is not a multiple of 16'),
    (['top', '--explain=zen4:6.12', '-c', '134217728'], 'period 134217728 is more than ibs_op'),
    (['hist', '--explain=zen4:6.12', '-F', '0'], 'invalid frequency 0'),
    (['hist', '--strata', 'maybe'], "unknown choice 'maybe'"),
    (['serve', '--strata', 'maybe'], "unknown choice 'maybe'"),
    (['hist', '--strata', 'auto', '-e', 'ibs_op//,ibs_fetch//'], '--strata: works with one event'),
    (['hist', '--strata', 'auto', '--html', 'x.html'], 'use `ibscope record --strata auto -o FILE`, then `ibscope report --html PAGE FILE`'),
    (['top', '--strata', 'maybe'], "unknown choice 'maybe'"),
    (['top', '--strata', 'auto', '--interval', '999ms'],
     '--strata: an interval of 0.999 s is too short for slices of both strata; use -d 1 or longer, or --strata off'),
    (['top', '--strata', 'on', '-d', '0.5', '--once'], '--strata: an interval of 0.5 s'),
    (['top', '--strata', 'on', '--source', 'sim', '--once'], '--strata: a simulation has no hardware filters'),
    (['top', '--strata', 'auto', '-i', 'x'], '-i: leave out options for sampling'),
    (['top', '--strata', 'auto', '--pin-dir', '/x'], '--pin-dir, --user-socket: the collector decides what is sampled'),
    (['record', '--strata', 'maybe'], "unknown choice 'maybe'"),
    (['record', '--strata', 'auto', '-e', 'ibs_op//,ibs_fetch//'], '--strata: works with one event'),
    (['record', '--strata', 'auto', '--json'], '--strata: lines of text have no weights'),
    (['record', '--strata', 'auto', '--max-size', '1M', '--rotate', '2'], '--strata and --rotate exclude each other'),
    (['record', '--strata', 'on', '--source', 'sim'], '--strata: a simulation has no hardware filters'),
    (['hist', '--strata', 'on', '--source', 'sim'], '--strata: a simulation has no hardware filters'),
    (['serve', *BOTH, '-c', '100000,1'], 'invalid period 1: must be from 10000'),
    (['serve', *BOTH, '-c', '1,100000'], 'invalid period 1: must be from 10000'),
    (['serve', *SIM, '-e', 'ibs_op//,ibs_fetch/fetchlat=128/'], "the simulation has no 'fetchlat'"),
    (['serve', *SIM, '-e', 'ibs_op//,ibs_fetch/cnt_ctl=1/'], "the simulation has no 'cnt_ctl'"),
    (['serve', *SIM, '-e', 'ibs_op//,ibs_fetch//u'], 'the simulation has no modifiers'),
    (['hist', '--plan', 'kernel'], 'must be one of hw, sched, driver, program, auto'),
    (['hist', '--plan', 'program,hw'], "'program' excludes other stages"),
    (['hist', '--plan', 'hw,auto'], "'auto' excludes other stages"),
    (['hist', *SIM, '--plan', 'sched', '0.1', '1'], 'use --plan program'),
    (['hist', *SIM, '--tlb', 'l1,hit'], "--tlb: column 4: 'hit' must be one of l1, l2, walk"),
    (['hist', *SIM, '--tlb', '!l1,l2,walk'], 'excludes everything'),
    (['hist', *SIM, '--page-size', '64k'], '4k, 2m, 1g'),
    (['hist', *SIM, '--page-size', '4k', '--page-size', '!2m'], 'not both'),
    (['hist', *SIM, '--remote-node', '1'], 'yes, no'),
    (['hist', *SIM, '--min-tlb-lat', '0'], '65535'),
    (['hist', *SIM, '--min-tlb-lat', '9', '--max-tlb-lat', '8'], 'above'),
    (['hist', *SIM, '--addr', '7f00-8000,g'], "--addr: column 11: expected a hexadecimal"),
    (['hist', *SIM, '--addr', '8000-7f00'], 'empty'),
    (['hist', *SIM, '--ip', '1+ffffffffffffffff0'], '64 bits'),
    (['hist', *SIM, '--ip', ','.join(f'{i:x}-{i + 1:x}' for i in range(0x10, 0x24, 2)),
      '--addr', ','.join(f'{i:x}-{i + 1:x}' for i in range(0x10, 0x20, 2))],
     '--addr, --ip: the filter needs 36 tests; the kernel'),
    (['hist', '--source', 'magic'], 'auto, ibs, sim'),
    (['hist', *SIM, '5q'], "invalid duration '5q'"),
    (['hist', *SIM, '--max-memory', '1T'], 'KiB, MiB, GiB'),
    (['record', *SIM, '--allocs', '-o', 'x'], "--allocs: put the program after '--', or choose processes"),
    (['record', *SIM, '--allocs', '--csv', '-p', '1'], "--allocs: put the program after '--', or choose processes"),
    (['record', *SIM, '--allocs=0', '--', 'true'], '--allocs'),
    (['record', *SIM, '--allocs=4Q', '--', 'true'], '--allocs'),
    (['record', *SIM, '--duration', '1w'], 'ms, s, m, h or d'),
    (['serve', *SIM, '--user-socket', 'x'], "--user-socket: invalid path 'x'"),
    (['serve', *SIM, '--user-jobs', '/j/*'], '--user-jobs needs --user-socket'),
    (['serve', *SIM, '--user-socket', '/x', '--user-jobs', '/'], "--user-jobs: invalid pattern '/'"),
    (['serve', *SIM, '--user-socket', '/x', '--pin-mode', '0644'], '--pin-mode 0644 lets all users read all counters'),
    (['serve', *SIM, '--user-socket', '/x', '--by', 'comm'], '--user-socket needs counters of cgroups'),
    (['serve', *SIM, '--push', 'ftp://x'], "invalid URL 'ftp://x': must be http://HOST"),
    (['serve', *SIM, '--push', 'https://a:b@x'], "invalid URL"),
    (['serve', *SIM, '--hot-lines', '--min-lat', '9'], '--hot-lines: --min-lat'),
    (['serve', *SIM, '--feed', 'stores,caches'], '--feed needs --hot-lines'),
    (['serve', *SIM, '--hot-lines', '--feed', 'walks'], 'without stores and caches'),
    (['serve', *SIM, '--flight', 'x'], "--flight: invalid TIME[:SIZE] 'x': must be from 1s to 1h and from 32K to 2G"),
    (['serve', *SIM, '--flight', '60s:'], "invalid TIME[:SIZE] '60s:'"),
    (['serve', *SIM, '--flight', '2h'], "invalid TIME[:SIZE] '2h'"),
    (['serve', *SIM, '--flight', '60s:1K'], "invalid TIME[:SIZE] '60s:1K'"),
    (['serve', *SIM, '--flight', '9' * 50], 'invalid TIME[:SIZE]'),
    (['serve', *FETCH, '--flight', '60s'], '--flight keeps ibs_op samples only'),
    (['serve', *SIM, *BOTH, '--flight', '60s'], '--flight keeps ibs_op samples only'),
    (['serve', *SIM, '--flight', '60s', '--push', 'http://a:1'], '--push and --flight cannot be combined'),
    (['serve', *SIM, '--flight-on', 'p99 > 1'], '--flight-on needs --flight'),
    *((['serve', *SIM, '--flight', '60s', '--flight-on', text], f'--flight-on: {why}') for text, why in (
        ('', 'column 1: expected a key or a value'),
        ('p98 > 1', "column 1: unknown 'p98'; did you mean 'p90'?"),
        ('p99 > fast', 'column 7: expected a number'),
        ('p99 =~ 1', 'column 7: expected <'),
        ('container web', 'column 11: expected ==, != or =~ after a key'),
        ('container == web', "column 17: expected a value, such as '&& p99 > 2000'"),
        ("container == 'web && p99 > 1", 'column 14: this quote is not closed'),
        ('container == web && samples_lost > 0', 'column 1: samples_lost and samples_unseen are those of all groups'),
        ('p99 > 1 && ', 'column 12: expected a key or a value'),
        ('p99 > 1 for', "column 12: expected a time after 'for'"),
        ('p99 > 1 for 2h', 'column 13: for: '),
        ('p99 > 1 for 5s or so', "column 16: expected '&&', 'for TIME' or the end"),
        ('pid == 1 && p99 > 1', '--by pid: not counted'),
        ('symbol == main && p99 > 1', '--by symbol: only recordings'),
        ('fetch == complete && samples > 1', '--by fetch: samples of ibs_op do not have that'),
        (' && '.join(['p99 > 1'] * 9), 'column 88: too many tests'),
        ('container == ' + 'x' * 64 + ' && p99 > 1', 'column 14: this text is too long'),
        ('p99 > 1' + ' ' * 300, 'column 1: the condition is too long'))),
    (['serve', *SIM, '--flight', '60s', *['--flight-on', 'p99 > 1'] * 9], '--flight-on: at most 8 conditions'),
    (['serve', *SIM, '--flight-dir', 'here'], '--flight-dir'),
    (['serve', *SIM, '--flight-keep', '0'], '--flight-keep'),
    (['serve', *SIM, '--flight-every', '0'], '--flight-every'),
    (['serve', *SIM, '--flight-keep-bytes', '1K'], '--flight-keep-bytes'),
    (['why', 'a', 'b'], "unexpected argument 'b': give one container"),
    (['why', '--duration', '3s'], '--duration: 3s is out of range: must be from 10s to 1h'),
    (['why', '--duration', 'long'], '--duration'),
    (['why', '--at', 'soon'], "--at: invalid time 'soon': must be seconds since 1970, a time such as 03:11"),
    (['why', '--at', '-1h', '--exporter', 'localhost:9950'], "--exporter: invalid URL 'localhost:9950': must be as in http://localhost:9950"),
    (['why', '--at', '-1h', 'a', 'b'], "unexpected argument 'b': give one container"),
    *((['why', *option], f'{option[0]} needs --at TIME') for option in (['--exporter', 'http://x'], ['--flight-dir', '/x'], ['--prometheus', 'http://x'], ['--match', 'x="y"'])),
    (['why', '--at', '-1h', '--prometheus', 'localhost:9090'], "--prometheus: invalid URL 'localhost:9090': must be as in http://localhost:9090"),
    (['why', '--at', '-1h', '--prometheus', 'http://x', '--exporter', 'http://x'], '--prometheus excludes --exporter'),
    (['why', '/etc/passwd', '--pin-dir', '/x'], "/etc/passwd is a recording: it excludes --pin-dir"),
    (['why', '-i', '/etc/passwd', 'a', 'b'], "unexpected argument 'b': give one container"),
    (['why', '--at', '-1h', '--match', 'x="y"'], '--match needs --prometheus URL'),
    (['ctl', '-o', 'x', 'status'], '-o: only dump writes a file'),
    (['serve', '--hot-lines', '-e', 'ibs_fetch'], 'ibs_fetch have no data addresses'),
    (['c2c', '--control', '/x', 'file'], 'exclude each other'),
    (['c2c', '--control', '/x', '--csv', '--json'], 'exclude each other'),
    (['c2c', '--control', '/x', '--min-lat', '9'], 'min-lat'),
    (['serve', *SIM, '--push', 'http://x', '--push-credentials', '/etc/passwd'], 'unencrypted: use https://'),
    (['serve', *SIM, '--push', 'http://localhost.evil', '--push-credentials', '/etc/passwd'], 'unencrypted: use https://'),
    (['serve', *SIM, '--push', 'https://x', '--push-credentials', '/etc/passwd'], 'other users can read the password: use mode 0600'),
    (['serve', *SIM, '--push', 'https://x', '--push-ca', '/nonexistent'], 'cannot read /nonexistent'),
    (['serve', *SIM, '--push', 'https://x', '--push-interval', '2s', '--push-duration', '3s'], 'longer than --push-interval'),
    (['serve', *SIM, '--push', 'https://x', '--push-format', 'otlp'], 'must be one of pyroscope, parca'),
    (['serve', *SIM, '--push-name', 'x'], 'add --push URL'),
    (['serve', *SIM, '--stacks'], '--stacks: only profiles have call chains; add --push URL'),
    (['serve', *SIM, '--grace', '5 m'], "invalid duration '5 m'"),
    (['hist', *SIM, '0'], 'interval'),
    (['hist', *SIM, 'nan'], "unexpected argument 'nan'"),
    (['hist', *SIM, '1', '0'], 'count'),
    (['hist', *SIM, '1', '-5'], '-5'),
    (['hist', *SIM, '1', '2', '3'], "'3'"),
    (['hist', *SIM, '--top', '0'], 'from 1 to'),
    (['hist', *SIM, '--sort', 'cycle'], "unknown column 'cycle'; did you mean 'cycles'?"),
    (['hist', *SIM, '--sort', 'histogram'], "unknown column 'histogram'"),
    (['hist', *SIM, '--columns', 'p99,p98'], "column 5: unknown column 'p98'"),
    (['hist', *SIM, '--csv', '--json'], 'exclude each other'),
    (['hist', *SIM, '--json', '--top', '3'], '--json has all series'),
    (['hist', *SIM, '--csv', '--histogram'], '--csv has all columns'),
    (['hist', *SIM, '--json', '-T'], '-T: '),
    (['ctl', 'status', '--top', '3'], 'apply to snapshot only'),
    (['doctor', 'now'], 'now'),
]
FAILED = [
    (['why', '/etc/passwd'], '/etc/passwd: unknown format'),
    (['why', '-i', '/no/such/file'], 'cannot open /no/such/file'),
    (['why', '-i', '-'], '-i -: the recording is read several times: give a file'),
    (['hist', *SIM, '--max-memory', '1'], '--max-memory'),
    (['hist', *SIM, '--cgroup', '/no/such/cgroup'], '/no/such/cgroup'),
    (['hist', *SIM, '--container', 'no-such-container'], "'no-such-container'"),
    (['hist', *SIM, '--container', 'no/such/container'], "'no/such/container'"),
    (['hist', *SIM, '--filter', 'cgroup == /no/such/cgroup'], '--filter'),
    (['hist', *SIM, '--filter', 'container == no-such'], '--filter'),
]


class BadInput(unittest.TestCase):
    def check(self, args, status, says):
        p = run(*args)
        self.assertEqual(p.returncode, status, f'{args}: {p.stderr}')
        self.assertEqual(p.stdout, '', args)
        errors = [line for line in p.stderr.splitlines() if line.startswith('ibscope: error: ')]
        self.assertEqual(len(errors), 1, f'{args}: {p.stderr}')
        self.assertIn(says, errors[0], args)

    def test_usage(self):
        for args, says in USAGE:
            with self.subTest(args=args):
                # what events can do together is looked at when pins are
                if args[0] == 'serve' and '--source' in args and not os.path.ismount('/sys/fs/bpf'):
                    self.skipTest('no bpffs is mounted')
                self.check(args, 2, says)

    def test_failure(self):
        for args, says in FAILED:
            with self.subTest(args=args):
                self.check(args, 1, says)

    def test_no_command(self):
        p = run()
        self.assertEqual((p.returncode, p.stdout), (2, ''))
        self.assertIn('usage:', p.stderr)

    def test_help(self):
        for args in (['--help'], ['hist', '--help'], ['doctor', '--help']):
            p = run(*args)
            self.assertEqual((p.returncode, p.stderr), (0, ''))
            self.assertIn('usage:', p.stdout)

    def test_help_and_version_of_all(self):
        commands = re.findall(r'^  ([a-z0-9]+) ', run('--help').stdout, re.M)
        self.assertGreater(len(commands), 6)
        version = run('--version')
        self.assertRegex(version.stdout, r'^ibscope \S+\n$')
        for c in commands:
            with self.subTest(c):
                for option in '-V', '--version':
                    p = run(c, option)
                    self.assertEqual((p.returncode, p.stdout, p.stderr), (0, version.stdout, ''))
                p = run('help', c)
                self.assertEqual((p.returncode, p.stdout, p.stderr), (0, run(c, '--help').stdout, ''))
                self.assertTrue(p.stdout.startswith(f'usage: ibscope {c} '), p.stdout)
                self.assertLessEqual(max(map(len, p.stdout.splitlines())), 100)
        self.assertEqual(run('help').stdout, run('--help').stdout)
        p = subprocess.run([ibscope.IBSCOPE + '-exporter', '-V'], capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout), (0, version.stdout.replace('ibscope', 'ibscope-exporter')))

    def test_help_filter(self):
        terms = run('help', 'filter')
        self.assertEqual(terms.returncode, 0)
        self.assertIn('dc_miss_lat (weight,weight1): ', terms.stdout)
        for args in ('--help', 'filter'), ('hist', '--help', 'filter'), ('report', '-h', 'filter'):
            self.assertEqual(run(*args).stdout, terms.stdout)
        self.assertNotIn('dc_phy_addr', run('hist', '--help').stdout)

    def test_listen_address(self):
        for program in ((ibscope.IBSCOPE, 'serve', *SIM), (ibscope.IBSCOPE + '-exporter',)):
            for bad in 'garbage', '', '1.2.3.4', '::1:80', ':70000', '[::1]', 'localhost:', 'a:-1', 'x' * 300:
                p = subprocess.run([*program, '--web.listen-address', bad, '--config-check'],
                                   capture_output=True, text=True, timeout=30)
                self.assertEqual(p.returncode, 2, (program, bad))
                self.assertRegex(p.stderr, 'HOST:PORT|longer than')
            p = subprocess.run([*program, '--web.listen-address', '[::1]:9950', '--config-check'],
                               capture_output=True, text=True, timeout=30)
            self.assertEqual(p.returncode, 0, p.stderr)

    def test_units(self):
        for args in (('--grace', '5m'), ('--grace', '90'), ('--grace', '1.5h'), ('--max-memory', '1G'),
                     ('--max-memory', '64'), ('--max-rss', '512MiB'), ('--nmi-cost', '2us')):
            p = run('serve', *SIM, '--config-check', *args)
            self.assertEqual(p.returncode, 0, (args, p.stderr))

    def test_explain_round_trip(self):
        text = 'mem_lvl == ram && weight1 > 300 || swpf'
        first = run('hist', '--filter', text, '--explain')
        self.assertEqual(first.returncode, 0, first.stderr)
        canonical = [x for x in first.stdout.splitlines() if x.startswith('filter: ')][0].removeprefix('filter: ')
        second = run('hist', '--filter', canonical, '--explain')
        self.assertEqual(second.stdout, first.stdout)

    def test_explain_parts(self):
        p = run('hist', '--explain', '--filter', 'swpf', '--ip', '401000-402000', '--tlb', '!walk',
                '--user')
        self.assertEqual(p.stdout.split('\n\n')[-1].splitlines()[:5], [
            'mode: user == 1', 'tlb: l1tlb_miss != 1 || l2tlb_miss != 1',
            'ip: ip >= 0x401000 && ip < 0x402000', 'filter: swpf == 1',
            'in the kernel, 6 tests of 24:'], p.stderr)

    def test_explain_strata(self):
        args = ['hist', '--strata', 'auto']
        p = run(*args, '--explain=zen4:6.12')
        self.assertIn('--strata               this event samples all ops for 55% of the time, and alternates with\n', p.stdout, p.stderr)
        self.assertIn(' ibs_op/cnt_ctl=1,l3missonly=1/ at a shorter period\n', p.stdout)
        p = run(*args, '--explain=zen3:7.2')
        self.assertIn('--strata               no: l3missonly requires Zen 4\n', p.stdout)
        for machine, strata in ('zen5:7.2', True), ('zen4:5.10', False):
            o = json.loads(run(*args, '--json', f'--explain={machine}').stdout)
            self.assertEqual((o['strata'], o['why_no_strata'] is None), (strata, strata))
        self.assertNotIn('strata', run('hist', '--explain=zen4:6.12').stdout)
        top = run('top', '--explain=zen4:6.12', '--strata', 'auto').stdout
        self.assertIn('ibs_op/cnt_ctl=1,l3missonly=1/ at a shorter period\n', top)

    def test_explain_plan(self):
        """Each predicate with its stage, on any machine, as wide as the terminal."""
        stages = {}
        options = ['--plan', 'hw,sched,driver', '--cgroup', '/a', '--src', 'dram', '--min-lat', '300',
                   '--kernel', '--comm', 'x', '-C', '0']
        for machine in 'zen6:7.2', 'zen5:7.2', 'zen4:6.12', 'zen2:5.10':
            p = run('hist', *options, f'--explain={machine}')
            self.assertEqual((p.returncode, p.stderr), (0, ''))
            lines = [x for x in p.stdout.split('\n\n')[1].splitlines() if x.startswith('-')]
            stages[machine] = [x[23:].split()[0].rstrip(',:') for x in lines]
            self.assertEqual([x.split()[0].rstrip(',') for x in lines],
                             ['-C', '--cgroup', '--comm', '--src', '--min-lat', '--user'])
            object = json.loads(run('hist', *options, '--json', f'--explain={machine}').stdout)
            self.assertEqual([x['stage'] for x in object['predicates']], stages[machine])
            for line in object['predicates']:
                self.assertEqual(line['why_not_earlier'] is None, line['stage'] in ('hardware', 'scheduler'), line)
        self.assertEqual(stages, {
            'zen6:7.2': ['scheduler', 'scheduler', 'program', 'hardware', 'hardware', 'hardware'],
            'zen5:7.2': ['scheduler', 'scheduler', 'program', 'hardware', 'hardware', 'driver'],
            'zen4:6.12': ['scheduler', 'scheduler', 'program', 'hardware', 'program', 'program'],
            'zen2:5.10': ['scheduler', 'program', 'program', 'program', 'program', 'program']})
        p = run('hist', '--explain=zen5:7.2', '--min-lat', '300', '--plan', 'hw')
        self.assertIn('erratum 1606', p.stdout)
        self.assertIn('estimated ops: known', p.stdout)
        p = run('hist', '--explain=zen4:6.12', '--src', 'dram', env={**os.environ, 'COLUMNS': '60'})
        self.assertIn('estimated ops: known; unseen samples: unknown', p.stdout)
        strict = run('hist', '--plan', 'program', '--explain=zen4:6.12', '--src', 'dram')
        self.assertIn('estimated ops: known; unseen samples: known', strict.stdout)
        self.assertEqual(strict.stdout, run('hist', '--plan', 'off', '--explain=zen4:6.12', '--src', 'dram').stdout)
        self.assertLessEqual(max(map(len, p.stdout.splitlines())), 60)
        for command, at in (['hist', '--explain=zen4:6.12'], 60), (['hist', '--explain', '--source', 'sim'], 80), (['report', '--explain'], 60):
            p = run(*command, '--min-lat', '100', '--addr', '1000-2000', env={**os.environ, 'COLUMNS': str(at)})
            self.assertIn('false unless', ' '.join(p.stdout.split()), p.stderr)
            self.assertLessEqual(max(len(x) for x in p.stdout.splitlines() if not x.startswith(('filter:', '--'))), at, p.stdout)
        self.assertIn('estimated ops: known; unseen samples: unknown', run('hist', '--explain', '--source', 'sim').stdout)
        wide = {**os.environ, 'COLUMNS': '200'}
        p = run('hist', '--plan', 'sched', '--explain=zen4:6.12', '--src', 'dram', env=wide)
        self.assertIn('l3missonly needs --plan hw; the number of unseen samples is then unknown', p.stdout)
        for command in 'hist', 'top', 'serve':
            self.assertIn('event: ibs_op/cnt_ctl=1,l3missonly=1/', run(command, '--explain=zen4:6.12', '--src', 'dram').stdout)
        p = run('record', '--explain=zen4:6.12', '--src', 'dram', env=wide)
        self.assertIn('l3missonly would leave estimated ops unknown: a recording has no counts of tagged ops; '
                      'use --plan hw for it', p.stdout)
        p = run('hist', '-F', '100', '--explain=zen4:6.12', '--src', 'dram', env=wide)
        self.assertIn('estimated ops unknown: with -F the period varies', p.stdout)
        p = run('serve', '--explain=zen4:6.12', '-e', 'ibs_op//,ibs_fetch//', '-c', '134217712,1048560')
        self.assertEqual((p.returncode, p.stderr), (0, ''))
        for command in 'record', 'serve', 'top':
            p = run(command, '--explain', '--op', 'load')
            self.assertEqual((p.returncode, p.stderr), (0, ''), command)
            self.assertRegex(p.stdout, '--op +program: drops other kinds of op')

    @unittest.skipIf(os.path.exists('/sys/bus/event_source/devices/ibs_op'), 'this machine has IBS')
    def test_no_ibs(self):
        p = run('hist', '0.1', '1')
        self.assertEqual((p.returncode, p.stdout), (1, ''))
        self.assertIn('ibs_op', p.stderr)
        p = run('doctor')
        self.assertEqual(p.returncode, 1)

    @unittest.skipUnless(os.geteuid() == 0, 'not root, so there is no privilege to drop')
    def test_no_privilege(self):
        p = subprocess.run(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                            ibscope.IBSCOPE, 'hist', *SIM, '0.1', '1'], capture_output=True,
                           text=True)
        if 'Permission denied' in p.stderr and 'setpriv' in p.stderr:
            self.skipTest('the build directory is not open to other users')
        self.assertEqual((p.returncode, p.stdout), (1, ''), p.stderr)
        self.assertIn('CAP_BPF', p.stderr)


if __name__ == '__main__':
    unittest.main()
