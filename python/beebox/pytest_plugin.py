"""The plugin of pytest: fixtures, kernels, expectation files, and failures that show the run.

Fixtures are ``kernel``, ``bpf_object``, ``bpf_instance``, ``bpf_program`` and ``bpf_model``; the
object is named by ``@pytest.mark.bpf_object("path")``, with keyword arguments of ``Object.load``,
or by the ini option ``bpf_object``. ``*.expect`` files are tests if their object is beside them; of
those that name their object (``object FILE``) each ``test NAME`` is one, and a failing one tells
its run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

from beebox._beebox import (
    CheckReport,
    Expectations,
    Instance,
    Kernel,
    Model,
    Object,
    Program,
    TestRunResult,
)
from beebox._errors import Error, NotFoundError
from beebox._failures import Ran, remembering, sections
from beebox._text import run_lines
from beebox._verdict import Verdict


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("beebox")
    group.addoption(
        "--bpf-kernel",
        action="append",
        metavar="KERNEL",
        help="a kernel that tests run for: 6.12, 6.18-minimal, debian-12, running or a path, or "
        "several: all, lts, 6.1-6.12; may be repeated",
    )
    group.addoption(
        "--bpf-cov",
        action="append",
        default=[],
        metavar="FORM=PATH",
        help="write what files of named tests executed: lcov=FILE, cobertura=FILE or html=DIR",
    )
    parser.addini("bpf_kernels", "kernels that tests run for [default: 6.18]", type="linelist")
    parser.addini("bpf_object", "the object of tests that name none, a path from the rootdir")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and check the forms of coverage."""
    for word in config.getoption("--bpf-cov"):
        form, _, path = word.partition("=")
        if form not in ("lcov", "cobertura", "html") or not path:
            raise pytest.UsageError(
                f"--bpf-cov {word}: write lcov=FILE, cobertura=FILE or html=DIR"
            )
    for line in (
        "bpf_object(path, **options): the object of the fixtures bpf_object, bpf_instance and "
        "bpf_program, a path from the test's file; options are those of Object.load",
        "bpf_program(name): the program of the fixture bpf_program",
        "bpf_kernels(name, …): the kernels of the test, in place of those of the ini file",
    ):
        config.addinivalue_line("markers", line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that use a kernel for each that is given."""
    if "kernel" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("bpf_kernels")
        own = list(marker.args) if marker is not None else []
        names = _kernel_names(metafunc.config, own)
        metafunc.parametrize("kernel", names, indirect=True, scope="session")


def _kernel_names(config: pytest.Config, own: list[str] | None = None) -> list[str]:
    """The kernels of the command line, of the test, of the ini file, or the built-in one."""
    given = config.getoption("--bpf-kernel") or own or config.getini("bpf_kernels") or ["6.18"]
    names = [name for word in given for name in _named(word)]
    return list(dict.fromkeys(names))


def _named(word: str) -> list[str]:
    """The kernels that a word means: one by its own name, or the built-in ones of a list."""
    if word in ("6.18-minimal", "running") or Path(word).exists():
        return [word]
    try:
        presets = Kernel.presets(word)
    except NotFoundError:
        return [word]
    return presets if len(presets) > 1 else [word]


@pytest.fixture(scope="session")
def kernel(request: pytest.FixtureRequest) -> Kernel:
    """The kernel that objects are loaded for; tests run for each of ``--bpf-kernel``."""
    return _kernel(request.param)


def _kernel(name: str) -> Kernel:
    if name == "running":
        return Kernel.running()
    if "/" in name or Path(name).exists():
        return Kernel.open(name)
    return Kernel.builtin(name)


def _marker(request: pytest.FixtureRequest, name: str) -> pytest.Mark | None:
    marker = request.node.get_closest_marker(name)
    return marker if isinstance(marker, pytest.Mark) else None


@pytest.fixture
def bpf_object(request: pytest.FixtureRequest) -> Object:
    """The object of the marker ``bpf_object``, or of the ini option of this name."""
    marker = _marker(request, "bpf_object")
    if marker is not None and marker.args:
        return Object(Path(request.node.path).parent / marker.args[0])
    configured = request.config.getini("bpf_object")
    if configured:
        return Object(request.config.rootpath / configured)
    raise pytest.UsageError(
        "no object: @pytest.mark.bpf_object('firewall.bpf.o'), or bpf_object in the ini file"
    )


@pytest.fixture
def bpf_instance(request: pytest.FixtureRequest, bpf_object: Object, kernel: Kernel) -> Instance:
    """The object, loaded anew for each test with the options of its marker."""
    marker = _marker(request, "bpf_object")
    options: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    if "bpf_model" in request.fixturenames:
        options.setdefault("models", True)
    return bpf_object.load(kernel=kernel, **options)


@pytest.fixture
def bpf_program(request: pytest.FixtureRequest, bpf_instance: Instance) -> Program:
    """The program of the marker ``bpf_program``, or the only one of the object."""
    marker = _marker(request, "bpf_program")
    if marker is not None:
        return bpf_instance.program(marker.args[0])
    programs = bpf_instance.programs
    if len(programs) == 1:
        return next(iter(programs.values()))
    names = ", ".join(programs)
    raise pytest.UsageError(f"which program? @pytest.mark.bpf_program(…) with one of {names}")


@pytest.fixture
def bpf_model(bpf_instance: Instance) -> Model:
    """A model of the kernel around the programs: objects, the process, results, faults."""
    return bpf_instance.model()


#: Runs whose verdicts assertions compare, of the test that runs.
_COMPARED = pytest.StashKey[list[TestRunResult]]()

#: The last runs of a test.
_RAN = pytest.StashKey[deque[Ran]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember the last runs of a test, wherever it makes them."""
    ran = item.stash[_RAN] = deque(maxlen=8)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("test_run", "model_run", "run_batch", "run_capture"):
            patch.setattr(Program, name, remembering(getattr(Program, name), ran))
        try:
            return (yield)
        finally:
            ran.clear()


def pytest_assertrepr_compare(
    config: pytest.Config, op: str, left: object, right: object
) -> list[str] | None:
    """Name the run behind a verdict that is compared; its section has the rest."""
    for side in (left, right):
        result = getattr(side, "result", None) if isinstance(side, Verdict) else None
        if result is not None:
            config.stash.setdefault(_COMPARED, []).append(result)
            return [f"{str(left)!r} {op} {str(right)!r}", run_lines(result)[0]]
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what a failing test ran and holds to its report, each text once."""
    report = yield
    compared = item.config.stash.get(_COMPARED, [])
    item.config.stash[_COMPARED] = []
    if report.failed and call.excinfo is not None:
        shown: list[str] = []
        for title, lines in sections(call.excinfo, compared[-1:], [*item.stash.get(_RAN, ())]):
            text = "\n".join(lines)
            if text and not any(text in before for before in shown):
                shown.append(text)
                report.sections.append((f"beebox: {title}", text))
    return report


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect expectation files that name their object, or have it beside them."""
    if file_path.suffix != ".expect":
        return None
    if _named_object(file_path) is not None:
        return NamedTests.from_parent(parent, path=file_path)
    header = _header(file_path)
    if "object" in header or _beside(file_path).is_file():
        return ExpectationFile.from_parent(parent, path=file_path)
    return None


def _beside(path: Path) -> Path:
    """The object of an expectation file that names none."""
    return path.with_suffix(".bpf.o")


#: Options in comments of an expectation file, ``# maps: rules.json``, and what they name.
_OPTIONS = ("object", "maps", "network", "perf_buffers")


def _header(path: Path) -> dict[str, str]:
    found = {}
    for line in path.read_text(errors="replace").splitlines():
        if not line.startswith("#"):
            break
        name, separator, value = line.lstrip("# ").partition(":")
        if separator and name.strip() in _OPTIONS:
            found[name.strip()] = value.strip()
    return found


def _named_object(path: Path) -> str | None:
    """The object that a file of named tests names."""
    for line in path.read_text(errors="replace").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "object":
            return rest.strip()
    return None


def _answer(*words: str) -> dict[str, Any]:
    """The answer of the command, as JSON."""
    command = [sys.executable, "-m", "beebox", *words, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise NotAnswered(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


class NotAnswered(Exception):
    """The command could not answer: what it said."""


class NotPassed(AssertionError):
    """A named test did not pass: its differences, and how its run went."""

    def __init__(self, test: dict[str, Any]) -> None:
        lines = []
        for it in test["differences"]:
            lines.append(f"{test['file']}:{it['line']}: {it['expectation']}")
            lines.append(f"  {it['difference']}")
        if "why_text" in test:
            lines += ["", test["why_text"]]
        super().__init__("\n".join(lines))


#: Tracefiles of the tests that ran, with ``--bpf-cov``, and their directory.
_TRACEFILES = pytest.StashKey[list[Path]]()
_DIRECTORY = pytest.StashKey[Path]()


class NamedTests(pytest.File):
    """A file of named tests."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield the tests, for each kernel."""
        listed = _answer("test", str(self.path), "--list")["tests"]
        kernels = _kernel_names(self.config)
        for test in listed:
            for kernel in kernels:
                name = test["test"] if kernels == ["6.18"] else f"{test['test']}[{kernel}]"
                yield NamedTest.from_parent(self, name=name, of=test["test"], kernel_name=kernel)

    def repr_failure(self, excinfo: Any) -> Any:  # type: ignore[override]
        """Show what the command said."""
        if isinstance(excinfo.value, NotAnswered):
            return str(excinfo.value)
        return super().repr_failure(excinfo)


class NamedTest(pytest.Item):
    """A test of a file."""

    def __init__(self, *, of: str, kernel_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.of = of
        self.kernel_name = kernel_name

    def runtest(self) -> None:
        """Run it."""
        words = ["test", str(self.path), "--match", self.of, "--kernel", self.kernel_name]
        if self.config.getoption("--bpf-cov"):
            files = self.config.stash.setdefault(_TRACEFILES, [])
            directory = self.config.stash.setdefault(_DIRECTORY, Path(tempfile.mkdtemp()))
            files.append(directory / f"{len(files)}.info")
            words += ["--coverage", f"lcov={files[-1]}"]
        for test in _answer(*words)["tests"]:
            if test["test"] == self.of and not test["passed"]:
                raise NotPassed(test)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Show what differs, and how the run went."""
        if isinstance(excinfo.value, NotPassed | NotAnswered):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the test in reports."""
        return self.path, None, f"{self.path.name}: {self.name}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the coverage of the tests."""
    files = [str(file) for file in session.config.stash.get(_TRACEFILES, []) if file.is_file()]
    if files:
        outputs = [word for it in session.config.getoption("--bpf-cov") for word in ("-o", it)]
        command = [sys.executable, "-m", "beebox", "coverage", *files, *outputs]
        subprocess.run(command, check=False)
        shutil.rmtree(session.config.stash[_DIRECTORY], ignore_errors=True)


class ExpectationFile(pytest.File):
    """An expectation file, a test for each kernel."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield the tests."""
        for name in _kernel_names(self.config):
            yield ExpectationItem.from_parent(self, name=f"expectations[{name}]", kernel_name=name)


class ExpectationItem(pytest.Item):
    """The check of an expectation file for a kernel."""

    def __init__(self, *, kernel_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel_name = kernel_name

    def runtest(self) -> None:
        """Load the object and check the file."""
        header, directory = _header(self.path), self.path.parent
        options: dict[str, Any] = {"perf_buffers": int(header.get("perf_buffers", 1 << 16))}
        if "network" in header:
            options["system"] = (directory / header["network"]).read_text()
        named = header.get("object")
        loaded = Object(directory / named if named else _beside(self.path))
        instance = loaded.load(kernel=_kernel(self.kernel_name), **options)
        if "maps" in header:
            instance.fill_maps(directory / header["maps"])
        report = instance.check(Expectations(self.path))
        if not report.is_met:
            raise NotMet(report)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """Show the differences, each with its line."""
        if isinstance(excinfo.value, NotMet):
            return str(excinfo.value.report)
        if isinstance(excinfo.value, Error):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Name the test in reports."""
        return self.path, None, f"{self.path.name} for {self.kernel_name}"


class NotMet(AssertionError):
    """Expectations are not met."""

    def __init__(self, report: CheckReport) -> None:
        super().__init__(str(report))
        self.report = report
