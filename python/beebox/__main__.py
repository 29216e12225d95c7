"""The command ``beebox``, as an entry point."""

from __future__ import annotations

import signal
import sys

from beebox._beebox import main as _main


def main() -> int:
    """Run the command with the arguments of this process; its exit code."""
    # The command ends at an interrupt, as the executable does.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _main(["beebox", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
