"""The examples of the documents run."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

#: Blocks of Python: with a file name they are tests of pytest, else they run as they stand.
BLOCK = re.compile(r"^```(python|pycon)(?: (\S+))?\n(.*?)^```$", re.M | re.S)

#: Libraries that examples may need.
EXTRAS = re.compile(
    r"\b(?:import (?:beebox, )?|from )(pyarrow|duckdb|polars|datafusion|ray|pyspark)\b"
)

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


def need(text: str) -> None:
    """Skip the test if a library of the examples is not there."""
    for name in EXTRAS.findall(text):
        pytest.importorskip(name)
        if name == "pyspark" and not shutil.which("java"):
            pytest.skip("Spark needs Java, and there is none")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions_run(page: Path, clone: Path) -> None:
    blocks = BLOCK.findall(page.read_text())
    text = "\n".join(text for kind, _, text in blocks if kind == "pycon")
    need(text)
    session = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(session, out=report.append)
    assert runner.failures == 0, "".join(report)


PROGRAMS = [
    pytest.param(name, text, id=f"{page.name}-{number}")
    for page in PAGES
    for number, (kind, name, text) in enumerate(BLOCK.findall(page.read_text()))
    if kind == "python"
]


@pytest.mark.parametrize(("name", "text"), PROGRAMS)
def test_programs_run(name: str, text: str, clone: Path) -> None:
    need(text)
    (clone / (name or "example.py")).write_text(text)
    command = [sys.executable, *(["-m", "pytest", "-q", name] if name else ["example.py"])]
    # Spark starts its workers by the name of a Python.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        command, cwd=clone, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
