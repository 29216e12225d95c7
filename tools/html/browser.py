"""A headless Chromium, driven by the DevTools protocol over pipes: no driver, no network, no package."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The path of a browser; None if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A page in a browser. Leave it by `with`."""

    def __init__(self, dark=False, size=(1500, 950)):
        self.profile = tempfile.TemporaryDirectory(prefix="beebox-browser-", ignore_cleanup_errors=True)
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        self.number = 0
        self.events = []
        self.rest = b""

        def place():
            # The browser reads commands from 3 and writes answers to 4.
            os.dup2(to_browser, 100)
            os.dup2(from_browser, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        self.process = subprocess.Popen(
            [
                find(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={self.profile.name}",
                "about:blank",
            ],
            preexec_fn=place,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each for each in targets if each["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Network.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        width, height = size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    session = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        os.close(self.commands)
        os.close(self.answers)
        self.profile.cleanup()

    def call(self, method, **params):
        """Sends a command and returns its result; events that come before are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != self.number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def receive(self):
        while b"\0" not in self.rest:
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise RuntimeError("the browser ended")
            self.rest += piece
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def open(self, path):
        """Opens a file, and waits until its scripts ran."""
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive())
        self.events = [event for event in self.events if event.get("method") != "Page.loadEventFired"]

    def ask(self, expression):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def key(self, key, text=None, shift=False):
        """Presses a key."""
        text = text if text is not None else (key if len(key) == 1 else None)
        if key == "Enter":
            text = "\r"
        params = {"key": key, "modifiers": 8 if shift else 0, "windowsVirtualKeyCode": 13 if key == "Enter" else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown", **params, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **params)

    def type(self, text):
        """Types a text."""
        self.call("Input.insertText", text=text)

    def click(self, selector, number=0):
        """Clicks the middle of an element."""
        place = self.ask(
            f"(() => {{ const all = document.querySelectorAll({json.dumps(selector)});"
            f" const box = all[{number}]?.getBoundingClientRect();"
            " return box && [box.x + Math.min(box.width, 60) / 2, box.y + box.height / 2]; })()"
        )
        if not place:
            raise RuntimeError(f"there is no {selector} {number}")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def screenshot(self, path):
        """Writes what is to be seen as PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def faults(self):
        """What went wrong in the page since the last call: exceptions, errors on its console, and what it
        asked the network for."""
        faults = []
        self.ask("0")
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                faults.append(details.get("exception", {}).get("description") or details["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
                faults.append(str(params["args"]))
            elif method == "Network.requestWillBeSent":
                url = params["request"]["url"]
                if not url.startswith("file://") or params.get("type") != "Document":
                    faults.append(f"request of {url}")
            elif method == "Page.javascriptDialogOpening":
                faults.append(f"dialog: {params['message']}")
        self.events = []
        return faults
