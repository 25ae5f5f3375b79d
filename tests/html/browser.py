"""A headless Chromium, asked over its DevTools protocol through two pipes: no port, no package."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find():
    """The program, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Failed(Exception):
    """The browser said no, or nothing."""


class Browser:
    """One page. `messages` has what its console said, `requests` what it asked of any network or disk."""

    def __init__(self, width=1280, height=900, dark=False):
        self.profile = tempfile.TemporaryDirectory()
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        # Away from 3 and 4, which the browser's own are to become.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 30) for end in (to_browser, from_browser)]

        def arrange():
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)
        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             "--disable-background-networking", "--no-first-run", f"--user-data-dir={self.profile.name}", "about:blank"],
            preexec_fn=arrange, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self.buffer, self.number = b"", 0
        self.messages, self.requests, self.session, self.is_loaded = [], [], None, False
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def close(self):
        try:
            self.call("Browser.close", whole=True)
        except Failed:
            pass
        self.process.wait(30)
        os.close(self.write_end)
        os.close(self.read_end)
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def receive(self):
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], 60)[0]:
                raise Failed("the browser is silent")
            piece = os.read(self.read_end, 1 << 20)
            if not piece:
                raise Failed("the browser is gone")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self.note(message)
        return message

    def note(self, message):
        method, values = message.get("method"), message.get("params", {})
        self.is_loaded |= method == "Page.loadEventFired"
        if method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.messages.append(str(values["args"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.messages.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"][:200])

    def call(self, method, whole=False, **values):
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session and not whole:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error']}")
                return answer["result"]

    # ---- what a user does

    def open(self, path, fragment=""):
        self.is_loaded = False
        self.call("Page.navigate", url="about:blank")
        while not self.is_loaded:
            self.receive()
        self.requests.clear()
        self.url = "file://" + os.path.abspath(path) + fragment
        self.is_loaded = False
        self.call("Page.navigate", url=self.url)
        while not self.is_loaded:
            self.receive()
        self.value("new Promise(done => { const look = () => 'ready' in document.documentElement.dataset ? done(1) : "
                   "requestAnimationFrame(look); look(); })")
        self.settle()

    def settle(self):
        """Until what was asked for is drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise Failed(result["exceptionDetails"].get("exception", {}).get("description", "?"))
        return result["result"].get("value")

    def cpu(self):
        """Seconds of CPU that the page's thread has taken: other work of the machine does not lengthen them."""
        self.call("Performance.enable", timeDomain="threadTicks")
        metrics = {one["name"]: one["value"] for one in self.call("Performance.getMetrics")["metrics"]}
        return metrics["TaskDuration"]

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def key(self, key, shift=False):
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35,
                 "Tab": 9}
        values = {"key": key, "modifiers": 8 if shift else 0, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        self.call("Input.dispatchKeyEvent", type="keyDown", **({"text": text} if text else {}), **values)
        self.call("Input.dispatchKeyEvent", type="keyUp", **values)
        self.settle()

    def type(self, text):
        for key in text:
            self.key(key)

    def point(self, selector, x, y):
        """A point of an element, in shares of its size."""
        box = self.value(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest', behavior: 'instant'}}); "
                         "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
        return {"x": box[0] + x * box[2], "y": box[1] + y * box[3]}

    def click(self, selector, x=0.5, y=0.5, times=1):
        at = self.point(selector, x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=times, **at)
        self.settle()

    def drag(self, selector, start, end):
        first, last = self.point(selector, *start), self.point(selector, *end)
        self.call("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **first)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", button="left", **last)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", button="left", clickCount=1, **last)
        self.settle()

    def wheel(self, selector, x, amount):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=amount, **self.point(selector, x, 0.5))
        self.settle()

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path):
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
