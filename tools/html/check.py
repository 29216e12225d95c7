#!/usr/bin/env python3
"""Tries the pages of `beebox run --html` and `beebox verify --html` in a headless Chromium: clicks, keys,
search, dark mode, names that are no HTML, and a walk of more than 100,000 steps.

    tools/html/check.py BEEBOX [DIRECTORY]

Screenshots go into the directory, if one is given. Exit code 77 if there is no browser.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import browser  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = "examples/sample.pcap"
NO_BROWSER = 77
# A directory and a file: the path of the object has all of it.
HOSTILE = ("x<", "script><img src=x onerror=alert(1)>.bpf.o")

# A loop of 4,000 iterations with a branch, which the verifier walks over one by one.
LONG = """.program "long"
.type socket_filter
.license "GPL"
.subprog "main"
    r6 = 0
    call 7
    if r0 > 10 goto +0
{filler}    r6 += 1
    if r6 < 4000 goto -20
    r0 = 0
    exit
""".format(filler="    r1 = r6\n" * 16)


class Failed(Exception):
    pass


def expect(what, got, wanted):
    if got != wanted:
        raise Failed(f"{what}: {got!r}, not {wanted!r}")


def expect_true(what, holds):
    if not holds:
        raise Failed(what)


class Check:
    def __init__(self, beebox, shots, scratch):
        self.beebox, self.shots, self.scratch = beebox, shots, scratch

    def make(self, name, *words):
        page = self.scratch / name
        done = subprocess.run([self.beebox, *words, "--html", page], cwd=ROOT, capture_output=True, text=True)
        expect_true(f"{words}: {done.stderr}", done.returncode in (0, 1))
        return page

    def shot(self, page, name):
        if self.shots:
            page.screenshot(self.shots / f"{name}.png")

    def run_page(self):
        """Packets, verdicts, the path of one forward and back, source, search."""
        path = self.make("run.html", "run", "examples/packets/firewall.bpf.o", "--pcap", SAMPLE)
        with browser.Browser() as page:
            page.open(path)
            rows = "document.querySelectorAll('[aria-label=Packets] .row').length"
            expect_true("rows of packets in view alone", 10 < page.ask(rows) < 100)
            position = "document.getElementById('position').textContent"
            expect("position", page.ask(position), "step 1 of 8")
            # Drops alone; the first of them.
            buttons = "[...document.querySelectorAll('section button')].map((each) => each.textContent)"
            drops = page.ask(buttons).index("XDP_DROP: 6")
            page.click("section button", drops)
            expect("drops", page.ask("document.querySelector('[aria-label=Packets][role=listbox] > div').style.height"), "120px")
            head = page.ask("document.getElementById('packet').textContent")
            expect_true(head, head.startswith("packet 59,") and "XDP_DROP (1), at firewall.bpf.c:174" in head)
            # To the end and back, by keys and by buttons.
            page.key("F")
            last = page.ask(position)
            page.key("ArrowLeft")
            page.key("ArrowRight")
            expect("back and forward", page.ask(position), last)
            text = page.ask("document.querySelector('.body').textContent")
            expect_true(f"the last line: {text}", "returns 1" in text and "actions[1]1was 0" in text)
            page.click("button[aria-label='First step']")
            expect_true("the first step", page.ask(position).startswith("step 1 of "))
            text = page.ask("document.querySelector('.body').textContent")
            expect_true(f"what is written later: {text}", "written later" in text)
            # A line of the source leads to the step that took it.
            line = page.ask(
                "(() => { const row = [...document.querySelectorAll('[aria-label=Source] .row')]"
                ".find((each) => each.textContent.includes('×') && !each.textContent.includes('firewall(struct'));"
                " row.click(); return row.querySelector('.number').textContent; })()"
            )
            selected = page.ask("document.querySelector('[aria-label=Path] [aria-selected=true] .number').textContent")
            expect("the line of the step", selected, line)
            # Search in the list that had the focus last.
            page.ask("document.querySelector('[aria-label=Source][role=listbox]').focus()")
            page.key("/")
            page.type("no such words")
            page.key("Enter")
            expect("not found", page.ask("document.getElementById('found').textContent"), "not found")
            page.ask("document.getElementById('search').value = 'map_lookup_elem(&blocked'")
            page.key("Enter")
            expect("found", page.ask("document.getElementById('found').textContent"), "")
            self.shot(page, "run")
            page.key("Escape")
            page.key("?")
            expect_true("the keys", page.ask("document.querySelector('dialog').open"))
            self.shot(page, "keys")
            expect("faults", page.faults(), [])

    def variables(self):
        """Variables over time, in the dark."""
        words = ("run", "examples/why/edge.bpf.o", "--set", "largest_segment=1400", "--pcap", SAMPLE, "--only", "59")
        path = self.make("edge.html", *words)
        with browser.Browser(dark=True) as page:
            page.open(path)
            colour = page.ask("getComputedStyle(document.body).backgroundColor")
            expect("dark", colour, "rgb(20, 23, 27)")
            text = "document.querySelector('.body').textContent"
            seen = []
            for _ in range(40):
                seen.append(page.ask(text))
                page.key("l")
            expect_true("port gets a value", any("port53" in each for each in seen))
            expect_true("the callee's frame", any("Variables of announced" in each for each in seen))
            page.key("f")
            expect("back to the first state", page.ask(text), seen[0])
            for _ in range(12):
                page.key("l")
            self.shot(page, "edge-dark")
            expect("faults", page.faults(), [])

    def one_name(self):
        """Integers above 2^53, variables of one name, and bytes of a packet that begins elsewhere."""
        words = ("run", "crates/cli/tests/data/page.bpf.o", "--packet", "zero:60")
        path = self.make("page.html", *words)
        with browser.Browser() as page:
            page.open(path)
            cells = "[...document.querySelectorAll('.body tr')].map((row) => [...row.children].map((cell) => cell.textContent).slice(0, 2).join('='))"
            titles = "[...document.querySelectorAll('.body h3')].map((title) => title.textContent)"
            seen = []
            for _ in range(int(page.ask("Number(document.querySelector('input[type=range]').max)")) + 1):
                seen.append((page.ask(titles), page.ask(cells)))
                page.key("l")
            last_titles, last = seen[-1]
            for exact in ("large=18446744073709551615", "half=9007199254740993", "low=-9007199254740993"):
                expect_true(f"{exact} in {last}", exact in last)
            inlined = [(each, rows) for each, rows in seen if "Variables of twice, inlined into page" in each]
            expect_true("the inlined function has its own", len(inlined) > 3)
            values = [[row for row in rows if row.startswith("value=")] for _, rows in inlined]
            expect_true(f"two variables of one name: {values}", ["value=1", "value=100"] in values)
            expect_true("it is gone behind the call", "Variables of twice, inlined into page" not in last_titles)
            began = [each for each in last_titles if each.startswith("Packet as it began before step ")]
            expect("the packet before", len(began), 1)
            expect("its first byte, twice", [row for row in last if row.startswith("eth.dst[0]=")], ['eth.dst[0]="ee"', 'eth.dst[0]="aa"'])
            expect("faults", page.faults(), [])
        # Packets that are not in the page may have written, too.
        words = ("run", "examples/packets/firewall.bpf.o", "--pcap", SAMPLE, "--only", "1,59,174")
        path = self.make("only.html", *words)
        with browser.Browser() as page:
            page.open(path)
            for _ in range(2):
                page.key("n")
            page.key("F")
            text = page.ask("document.querySelector('.body').textContent")
            expect_true(f"who wrote before: {text}", "one that is not in the page" in text)

    def names(self):
        """Names of files and texts of objects that would be elements, if they were HTML."""
        directory = self.scratch / HOSTILE[0]
        directory.mkdir()
        bytes_of = (ROOT / "examples/packets/firewall.bpf.o").read_bytes()
        for text, hostile in ((b"return action;", b"</script><b>x;"), (b"firewall.bpf.c", b"</script>.bpf.")):
            expect_true(f"{text} is in the object", text in bytes_of)
            bytes_of = bytes_of.replace(text, hostile)
        file = directory / HOSTILE[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes_of)
        for name, words in (("Source", ("run", file, "--pcap", SAMPLE)), ("Program", ("verify", file))):
            path = self.make(f"{name}.html", *words)
            with browser.Browser() as page:
                page.open(path)
                expect("elements of names", page.ask("document.querySelectorAll('img, b').length"), 0)
                page.ask(f"document.querySelector('[aria-label={name}][role=listbox]').focus()")
                page.key("/")
                page.type("</script><b>x;")
                page.key("Enter")
                row = f"document.querySelector('[aria-label={name}] [aria-selected=true]').textContent"
                expect_true("the text of the line", "</script><b>x;" in page.ask(row))
                expect("faults", page.faults(), [])

    def refusal(self):
        """The walk to a refusal, with its causes."""
        path = self.make("port.html", "verify", "examples/verify/port.bpf.o")
        with browser.Browser() as page:
            page.open(path)
            text = "document.querySelector('.body').textContent"
            expect_true("the refusal comes first", "Why it is refused" in page.ask(text))
            expect_true("the registers", "pkt(id=1,off=14,r=0" in page.ask(text))
            position = "document.getElementById('position').textContent"
            expect("position", page.ask(position), "step 14 of 14")
            self.shot(page, "refusal")
            # The first link of the causes.
            page.click(".body ol button.link")
            expect("a cause", page.ask(position), "step 2 of 14")
            page.key("F")
            page.key("h")
            expect("one step back", page.ask(position), "step 13 of 14")
            expect("faults", page.faults(), [])

    def long_walk(self):
        """More than 100,000 steps: it opens, and goes on and back at once."""
        case = self.scratch / "long.case"
        case.write_text(LONG)
        path = self.make("long.html", "verify", case)
        with browser.Browser() as page:
            began = time.monotonic()
            page.open(path)
            opened = time.monotonic() - began
            steps = page.ask("Number(document.querySelector('input[type=range]').max) + 1")
            expect_true(f"{steps} steps", steps > 100_000)
            began = time.monotonic()
            for key in ("f", "F", "E", "E", "h", "h"):
                page.key(key)
            page.ask("0")
            moved = (time.monotonic() - began) / 6
            expect_true("few rows are in the page", page.ask("document.querySelectorAll('.row').length") < 300)
            pruned = "Why it is covered"
            page.ask("document.querySelector('[aria-label=Walk][role=listbox]').focus()")
            page.key("f")
            page.key("/")
            page.type("pruned")
            page.key("Enter")
            expect_true("why a path was pruned", pruned in page.ask("document.querySelector('.body').textContent"))
            page.key("Escape")
            page.key("c")
            expect_true("the checkpoint", "checkpoint" in page.ask("document.querySelector('[aria-label=Walk] [aria-selected=true]').textContent"))
            page.key("/")
            page.ask("document.getElementById('search').value = 'asks for precision'")
            page.key("Enter")
            text = page.ask("document.querySelector('.body').textContent")
            expect_true("where precision came from", "Carried back over" in text and "Precise from now on" in text)
            self.shot(page, "long")
            expect("faults", page.faults(), [])
            print(f"{steps} steps: opened in {opened:.1f} s, {1000 * moved:.0f} ms a step")
            expect_true("it opens in 20 s, and a step takes half a second at most", opened < 20 and moved < 0.5)


def main():
    if not browser.find():
        print("there is no browser: " + ", ".join(browser.NAMES), file=sys.stderr)
        return NO_BROWSER
    beebox = pathlib.Path(sys.argv[1]).resolve()
    shots = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        check = Check(beebox, shots, pathlib.Path(scratch))
        for part in (check.run_page, check.variables, check.one_name, check.names, check.refusal, check.long_walk):
            part()
            print(f"{part.__name__}: {part.__doc__.splitlines()[0]}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failed:
        sys.exit(f"failed: {failed}")
