"""Packets by field, for failing tests and notebooks: Ethernet, VLAN, ARP, IP, TCP, UDP and ICMP."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterator

Field = tuple[str, object]
Layer = Callable[[bytes], Iterator[Field]]

_ETHERTYPES = {0x0800: "IPv4", 0x0806: "ARP", 0x86DD: "IPv6", 0x8100: "VLAN", 0x88A8: "QinQ"}
_PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6"}
_TCP_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")


def fields(packet: bytes) -> dict[str, object]:
    """The fields of an Ethernet frame, by names such as ``ip.src``, as far as it is long enough.

    What follows the last header that is known is ``payload``.
    """
    return dict(_ethernet(bytes(packet)))


def describe(packet: bytes) -> str:
    """A packet by field: a line for each header, and one for the payload."""
    lines: dict[str, list[str]] = {}
    for name, value in fields(packet).items():
        layer, _, field = name.partition(".")
        lines.setdefault(layer, []).append(f"{field} {value}" if field else str(value))
    text = (f"{layer:<8} {', '.join(inside)}" for layer, inside in lines.items())
    return "\n".join([f"{len(packet)} bytes", *text])


def changes(before: bytes, after: bytes) -> str:
    """The fields that differ from one packet to another, a line for each."""
    old, new = fields(before), fields(after)
    lines = []
    if len(before) != len(after):
        lines.append(f"length   {len(before)} -> {len(after)}")
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            lines.append(f"{name}: {old.get(name, 'absent')} -> {new.get(name, 'absent')}")
    return "\n".join(lines) or "unchanged"


def _mac(raw: bytes) -> str:
    return raw.hex(":")


def _payload(raw: bytes) -> Iterator[Field]:
    if raw:
        shown = raw[:64].hex(" ", -4)
        yield "payload", shown if len(raw) <= 64 else f"{shown} ({len(raw)} bytes)"


def _ethernet(raw: bytes) -> Iterator[Field]:
    if len(raw) < 14:
        yield from _payload(raw)
        return
    kind = int.from_bytes(raw[12:14], "big")
    yield "eth.dst", _mac(raw[:6])
    yield "eth.src", _mac(raw[6:12])
    yield "eth.type", _ETHERTYPES.get(kind, hex(kind))
    rest, depth = raw[14:], 0
    while kind in (0x8100, 0x88A8) and len(rest) >= 4 and depth < 2:
        tag, kind = struct.unpack_from("!HH", rest)
        layer = "vlan" if depth == 0 else "vlan2"
        yield f"{layer}.id", tag & 0xFFF
        yield f"{layer}.priority", tag >> 13
        yield f"{layer}.type", _ETHERTYPES.get(kind, hex(kind))
        rest, depth = rest[4:], depth + 1
    layers: dict[int, Layer] = {0x0800: _ipv4, 0x86DD: _ipv6, 0x0806: _arp}
    yield from layers.get(kind, _payload)(rest)


def _arp(raw: bytes) -> Iterator[Field]:
    if len(raw) < 28 or raw[4:6] != b"\x06\x04":
        yield from _payload(raw)
        return
    operation = int.from_bytes(raw[6:8], "big")
    yield "arp.op", {1: "request", 2: "reply"}.get(operation, operation)
    yield "arp.sha", _mac(raw[8:14])
    yield "arp.spa", str(ipaddress.IPv4Address(raw[14:18]))
    yield "arp.tha", _mac(raw[18:24])
    yield "arp.tpa", str(ipaddress.IPv4Address(raw[24:28]))
    yield from _payload(raw[28:])


def _ipv4(raw: bytes) -> Iterator[Field]:
    if len(raw) < 20 or raw[0] >> 4 != 4:
        yield from _payload(raw)
        return
    _, tos, length, ident, fragment, ttl, protocol, checksum = struct.unpack_from("!BBHHHBBH", raw)
    header = max(raw[0] % 16 * 4, 20)
    yield "ip.src", str(ipaddress.IPv4Address(raw[12:16]))
    yield "ip.dst", str(ipaddress.IPv4Address(raw[16:20]))
    yield "ip.proto", _PROTOCOLS.get(protocol, protocol)
    yield "ip.ttl", ttl
    yield "ip.len", length
    yield "ip.id", ident
    yield "ip.tos", tos
    yield "ip.sum", hex(checksum)
    if fragment & 0x3FFF:
        yield "ip.fragment", f"offset {(fragment & 0x1FFF) * 8}, more {bool(fragment & 0x2000)}"
    if header > 20:
        yield "ip.options", raw[20:header].hex()
    # Later fragments begin with data.
    follows = _payload if fragment & 0x1FFF else _transport(protocol)
    yield from follows(raw[header:])


def _ipv6(raw: bytes) -> Iterator[Field]:
    if len(raw) < 40 or raw[0] >> 4 != 6:
        yield from _payload(raw)
        return
    protocol = raw[6]
    yield "ip6.src", str(ipaddress.IPv6Address(raw[8:24]))
    yield "ip6.dst", str(ipaddress.IPv6Address(raw[24:40]))
    yield "ip6.next", _PROTOCOLS.get(protocol, protocol)
    yield "ip6.hop_limit", raw[7]
    yield "ip6.len", int.from_bytes(raw[4:6], "big")
    yield from _transport(protocol)(raw[40:])


def _transport(protocol: int) -> Layer:
    layers: dict[int, Layer] = {1: _icmp, 6: _tcp, 17: _udp, 58: _icmp}
    return layers.get(protocol, _payload)


def _tcp(raw: bytes) -> Iterator[Field]:
    if len(raw) < 20:
        yield from _payload(raw)
        return
    source, destination, seq, ack, place, flags, window, checksum, _ = struct.unpack_from(
        "!HHIIBBHHH", raw
    )
    names = [name for bit, name in enumerate(_TCP_FLAGS) if flags >> bit & 1]
    yield "tcp.sport", source
    yield "tcp.dport", destination
    yield "tcp.flags", "|".join(names) or "none"
    yield "tcp.seq", seq
    yield "tcp.ack", ack
    yield "tcp.window", window
    yield "tcp.sum", hex(checksum)
    header = max(place >> 2 & 0x3C, 20)
    if header > 20:
        yield "tcp.options", raw[20:header].hex()
    yield from _payload(raw[header:])


def _udp(raw: bytes) -> Iterator[Field]:
    if len(raw) < 8:
        yield from _payload(raw)
        return
    source, destination, length, checksum = struct.unpack_from("!HHHH", raw)
    yield "udp.sport", source
    yield "udp.dport", destination
    yield "udp.len", length
    yield "udp.sum", hex(checksum)
    yield from _payload(raw[8:])


def _icmp(raw: bytes) -> Iterator[Field]:
    if len(raw) < 4:
        yield from _payload(raw)
        return
    yield "icmp.type", raw[0]
    yield "icmp.code", raw[1]
    yield "icmp.sum", hex(int.from_bytes(raw[2:4], "big"))
    yield from _payload(raw[4:])
