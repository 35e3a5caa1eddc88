"""A headless Chromium that tests open pages in: renders, clicks, zooms, and hears every complaint.

    with Browser() as browser:
        page = browser.open("look.html", dark=True)
        page.click(".thumb[data-head='1']")
        page.wheel("#map", -300)
        assert page.evaluate("document.title") == "..."
        page.screenshot("look.png")
        assert page.complaints == []

It speaks the DevTools protocol over the two pipes of --remote-debugging-pipe; nothing but Python's
standard library is needed. The network is switched off: a page that asks for anything complains.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77  # the exit status that ctest reports as skipped
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_chromium():
    """The program, or None."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    return None


def chromium_or_skip():
    """The program; without it the test ends as skipped, which is not passed."""
    program = find_chromium()
    if program is None:
        print("skipped: there is no Chromium (package chromium-headless-shell)")
        sys.exit(SKIPPED)
    return program


class PageError(Exception):
    """A script in the page threw, or what was looked for is not there."""


class Browser:
    def __init__(self, program=None, timeout=60):
        self._timeout = timeout
        self._profile = tempfile.mkdtemp(prefix="heddle-page-")
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()

        def pipes():  # Chromium reads from 3 and writes to 4
            to_3, to_4 = os.dup(commands), os.dup(answers)
            os.dup2(to_3, 3)
            os.dup2(to_4, 4)
        self._process = subprocess.Popen(
            [program or find_chromium(), "--headless", "--no-sandbox", "--disable-gpu",
             "--hide-scrollbars", "--remote-debugging-pipe", "--no-first-run",
             f"--user-data-dir={self._profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=pipes)
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self._pages = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _message(self, deadline):
        """The next message of the browser."""
        while b"\0" not in self._buffer:
            if time.monotonic() > deadline:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise PageError("Chromium ended")
            self._buffer += part
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def _handle(self, message):
        page = self._pages.get(message.get("sessionId"))
        if page is not None and "method" in message:
            page.on_event(message["method"], message["params"])

    def send(self, method, session=None, **parameters):
        """Sends a command and gives back its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + self._timeout
        while True:
            message = self._message(deadline)
            if message.get("id") == self._number:
                if "error" in message:
                    raise PageError(f"{method}: {message['error']['message']}")
                return message["result"]
            self._handle(message)

    def open(self, path, dark=False, width=1100, height=1400):
        """Opens a file and waits until it is loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        self._pages[session] = page
        page.start(dark, width, height)
        page.load(Path(path).resolve().as_uri())
        return page


class Page:
    def __init__(self, browser, session):
        self._browser = browser
        self._session = session
        self._loaded = False
        self.complaints = []  # errors and warnings of scripts, and requests that failed

    def send(self, method, **parameters):
        return self._browser.send(method, self._session, **parameters)

    def on_event(self, method, event):
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(a.get("value", a.get("description")))
                                            for a in event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(event["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            url = event["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.complaints.append(f"the page asks for {url}")

    def start(self, dark, width, height):
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")
        self.send("Network.emulateNetworkConditions", offline=True, latency=0,
                  downloadThroughput=0, uploadThroughput=0)
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.set_dark(dark)

    def set_dark(self, dark):
        self.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def load(self, url):
        self._loaded = False
        self.send("Page.navigate", url=url)
        while not self._loaded:
            self.evaluate("1")
            time.sleep(0.02)

    def evaluate(self, script):
        """The value of an expression; promises are waited for."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait_for(self, script, seconds=20):
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(script):
            if time.monotonic() > deadline:
                raise PageError(f"never true: {script}")
            time.sleep(0.05)

    def place_of(self, selector, x=0.5, y=0.5):
        """A point of an element, as shares of its size, scrolled into view."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
            " e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            " return [b.left, b.top, b.width, b.height]; })()")
        if box is None or box[2] == 0:
            raise PageError(f"{selector} is not there to be seen")
        return box[0] + x * box[2], box[1] + y * box[3]

    def _mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def hover(self, selector, x=0.5, y=0.5):
        px, py = self.place_of(selector, x, y)
        self._mouse("mouseMoved", px, py)

    def click(self, selector, x=0.5, y=0.5):
        px, py = self.place_of(selector, x, y)
        self._mouse("mouseMoved", px, py)
        self._mouse("mousePressed", px, py, button="left", clickCount=1)
        self._mouse("mouseReleased", px, py, button="left", clickCount=1)

    def drag(self, selector, begin, end):
        """From one point of an element to another, both as shares of its size."""
        bx, by = self.place_of(selector, *begin)
        ex, ey = self.place_of(selector, *end)
        self._mouse("mouseMoved", bx, by)
        self._mouse("mousePressed", bx, by, button="left", clickCount=1)
        self._mouse("mouseMoved", (bx + ex) / 2, (by + ey) / 2, button="left", buttons=1)
        self._mouse("mouseMoved", ex, ey, button="left", buttons=1)
        self._mouse("mouseReleased", ex, ey, button="left", clickCount=1)

    def wheel(self, selector, delta, x=0.5, y=0.5):
        px, py = self.place_of(selector, x, y)
        self._mouse("mouseWheel", px, py, deltaX=0, deltaY=delta)

    def screenshot(self, path, whole=True):
        """A PNG of the window, or of the whole page."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                         **({"clip": self._whole()} if whole else {}))
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def _whole(self):
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
