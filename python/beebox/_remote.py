"""Captures that are elsewhere: object stores and other file systems that fsspec knows."""

from __future__ import annotations

from typing import IO, Any


def open_remote(address: str) -> IO[Any]:
    """The bytes at an address such as ``s3://bucket/day.pcap``."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"{address} needs fsspec: pip install fsspec") from error
    return fsspec.open(address, "rb").open()  # type: ignore[no-any-return]
