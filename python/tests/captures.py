"""Captures that tests make: records of pcap, one in another one's packet if asked for."""

from __future__ import annotations

import os
import random
import signal
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beebox._tasks import Scan, Task

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)


def record(time: int, data: bytes) -> bytes:
    """A record of pcap."""
    return struct.pack("<IIII", time // 1_000_000, time % 1_000_000, len(data), len(data)) + data


def frame(at: int, payload: bytes, port: int) -> bytes:
    """An Ethernet frame with UDP."""
    udp = struct.pack(">HHHH", 40_000 + at % 1000, port, 8 + len(payload), 0) + payload
    addresses = bytes([10, 0, at >> 8 & 255, at & 255, 192, 0, 2, 1])
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), at & 0xFFFF, 0, 64, 17, 0) + addresses
    return bytes.fromhex("0200000000010200000000020800") + ip + udp


def packets(size: int, seed: int = 1) -> bytes:
    """Records of about so many bytes; a tenth is of port 53."""
    chance = random.Random(seed)
    pieces, length, at = [], 0, 0
    noise = chance.randbytes(1 << 16)
    while length < size:
        begin, count = chance.randrange(1 << 15), chance.randrange(40, 1400)
        port = 53 if at % 10 == 0 else 443
        pieces.append(
            record(1_700_000_000_000_000 + at * 137, frame(at, noise[begin : begin + count], port))
        )
        length += len(pieces[-1])
        at += 1
    return b"".join(pieces)


def write(path: Path, size: int, *, seed: int = 1, inner: int | None = None) -> Path:
    """Writes a capture. ``inner`` is an offset that a packet with a capture inside lies over."""
    if inner is None:
        path.write_bytes(HEADER + packets(size, seed))
        return path
    before = packets(inner - 70_000, seed)
    payload = b"".join(
        record(1_700_000_000_000_000 + at, frame(at, bytes(900), 53)) for at in range(100)
    )
    hidden = record(1_700_000_000_000_000, frame(1, payload[:60_000], 443) + payload[60_000:])
    path.write_bytes(HEADER + before + hidden + packets(size - inner, seed + 1))
    return path


def repeat(path: Path, size: int) -> Path:
    """A capture of one set of records again and again."""
    records = packets(32 << 20)
    with path.open("wb") as out:
        out.write(HEADER)
        for _ in range(-(-size // len(records))):
            out.write(records)
    return path


@dataclass(frozen=True)
class Dying(Scan):
    """A scan whose first reader of a marked file dies behind its first batch."""

    marker: str = ""
    process: str = "worker"

    def batches(self, task: Task, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """The rows of a task, with a death in the middle the first time."""
        for count, batch in enumerate(super().batches(task, columns)):
            if count == 1 and task.part and task.part[0] and not os.path.exists(self.marker):
                Path(self.marker).touch()
                os.kill(self._victim(), signal.SIGKILL)
            yield batch

    def _victim(self) -> int:
        """This process, or the executor that started it."""
        pid = os.getpid()
        while self.process == "executor":
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
                break
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        return pid
