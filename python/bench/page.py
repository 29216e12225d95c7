"""What a benchmark prints, in the page that shows it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def write(page: str, text: str) -> None:
    """Puts a text into the block of a page that this script writes, if ``--write`` is given."""
    if "--write" not in sys.argv:
        return
    path = ROOT / "docs" / page
    begin = re.escape(f"<!-- Written by python/bench/{Path(sys.argv[0]).name} --write -->\n")
    block = re.compile(f"({begin}```text\n).*?(```\n)", re.S)
    content, count = block.subn(lambda found: found[1] + text + found[2], path.read_text())
    assert count == 1, f"{path} has no block of this script"
    path.write_text(content)
