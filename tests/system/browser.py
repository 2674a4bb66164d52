# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A headless Chromium that is driven by keys, over a pipe."""
import base64
import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
import unittest

SECONDS = 60    # for what a loaded host does late
KEYS = {'Tab': 9, 'Enter': 13, 'Escape': 27, 'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40}


shared = None


def browse():
    """The browser of a module of tests, until that ends: it takes two seconds of CPU time to start."""
    global shared
    if not shared:
        shared = Browser()
        unittest.addModuleCleanup(stop_shared)
    return shared


def stop_shared():
    global shared
    shared.stop()
    shared = None


class Browser:
    """It has one page at a time, to which all calls go."""

    def __init__(self):
        self.home = tempfile.TemporaryDirectory()
        to_read, self.to = os.pipe()
        self.of, of_write = os.pipe()
        self.number, self.rest, self.events, self.session = 0, b'', [], None

        def descriptors():    # it reads 3 and writes 4
            a, b = os.dup(to_read), os.dup(of_write)
            os.dup2(a, 3)
            os.dup2(b, 4)
        self.p = subprocess.Popen(['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking',
                                   '--allow-file-access-from-files', '--remote-debugging-pipe', f'--user-data-dir={self.home.name}'],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
                                  preexec_fn=descriptors)
        os.close(to_read)
        os.close(of_write)

    @contextlib.contextmanager
    def page(self):
        """A new page: this browser."""
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        try:
            self.call('Page.enable')
            self.call('Emulation.setFocusEmulationEnabled', enabled=True)
            self.size(1400, 900)
            yield self
        finally:
            self.session = None
            self.call('Target.closeTarget', targetId=target)

    def dom(self, url, ms):
        """A page after @ms milliseconds of its own time, which pass at once: its elements, and what was complained
        about in its console."""
        with self.page():
            for domain in 'Runtime', 'Log':
                self.call(f'{domain}.enable')
            self.events.clear()
            self.open(url)
            self.wait('Page.loadEventFired')
            self.call('Emulation.setVirtualTimePolicy', policy='pauseIfNetworkFetchesPending', budget=ms,
                      maxVirtualTimeTaskStarvationCount=9999)
            self.wait('Emulation.virtualTimeBudgetExpired')
            told = [e['params'] for e in self.events
                    if e['method'] in ('Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Log.entryAdded')]
            return self.js('document.documentElement.outerHTML'), told

    def wait(self, event):
        while not any(e['method'] == event for e in self.events):
            self.events.append(self.message())

    def stop(self):
        self.p.kill()
        self.p.wait()
        os.close(self.to)
        os.close(self.of)
        for _ in range(50):    # its helpers still write for a moment
            try:
                return self.home.cleanup()
            except OSError:
                time.sleep(0.1)

    def message(self):
        end = time.monotonic() + SECONDS
        while b'\0' not in self.rest:
            if not select.select([self.of], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError('the browser does not answer')
            data = os.read(self.of, 1 << 20)
            if not data:
                raise AssertionError('the browser has gone')
            self.rest += data
        text, self.rest = self.rest.split(b'\0', 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        request = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            request['sessionId'] = self.session
        data = json.dumps(request).encode() + b'\0'
        while data:
            data = data[os.write(self.to, data):]
        while True:
            m = self.message()
            if m.get('id') == self.number:
                if 'error' in m:
                    raise AssertionError(f'{method}: {m["error"]}')
                return m['result']
            self.events.append(m)

    def size(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def js(self, expression):
        result = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in result:
            raise AssertionError(f'{expression}: {result["exceptionDetails"]}')
        return result['result'].get('value')

    def until(self, expression):
        end = time.monotonic() + SECONDS
        while not self.js(expression):
            if time.monotonic() > end:
                raise AssertionError(f'never true: {expression}')
            time.sleep(0.05)

    def open(self, url):
        self.call('Page.navigate', url=url)

    def key(self, name, shift=False):
        extra = {'text': '\r'} if name == 'Enter' else {}
        for kind in 'keyDown', 'keyUp':
            self.call('Input.dispatchKeyEvent', type=kind, key=name, code=name, windowsVirtualKeyCode=KEYS[name],
                      modifiers=8 if shift else 0, **(extra if kind == 'keyDown' else {}))

    def tab_to(self, expression, most=300):
        """Press Tab until what is focused fulfils it; `e` is the element."""
        for _ in range(most):
            self.key('Tab')
            if self.js(f'(e => {expression})(document.activeElement)'):
                return
        raise AssertionError(f'no Tab leads to {expression}')

    def pdf(self):
        return base64.b64decode(self.call('Page.printToPDF', preferCSSPageSize=True)['data'])

    def png(self, path):
        with open(path, 'wb') as f:
            f.write(base64.b64decode(self.call('Page.captureScreenshot')['data']))
