"""Packets by field."""

from __future__ import annotations


def describe(packet: bytes) -> str:
    """A packet by field, as lines of text."""
    return packet.hex(" ", 4)
