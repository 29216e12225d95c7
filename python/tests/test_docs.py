"""The examples of the documents run."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

#: Blocks of Python: with a file name they are tests of pytest, else they run as they stand.
BLOCK = re.compile(r"^```(python|pycon)(?: (\S+))?\n(.*?)^```$", re.M | re.S)

#: Libraries that examples may need.
EXTRAS = re.compile(r"\bimport (?:beebox, )?(pyarrow|duckdb|polars|datafusion|ray)\b")

PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if BLOCK.search(page.read_text())
]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the examples, to which the examples may write."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_documents_have_examples() -> None:
    assert {"README.md", "python.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, clone: Path) -> None:
    blocks = BLOCK.findall(page.read_text())
    for name in EXTRAS.findall("".join(text for _, _, text in blocks)):
        pytest.importorskip(name)
    sessions = "\n".join(text for kind, _, text in blocks if kind == "pycon")
    session = doctest.DocTestParser().get_doctest(sessions, {}, page.name, str(page), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(session, out=report.append)
    assert runner.failures == 0, "".join(report)
    for kind, name, text in blocks:
        if kind == "pycon":
            continue
        if not name:
            exec(compile(text, page.name, "exec"), {})
            continue
        (clone / name).write_text(text)
        command = [sys.executable, "-m", "pytest", "-q", name]
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
