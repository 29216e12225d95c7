"""Values of structures and unions."""

from __future__ import annotations

import enum
from typing import Any, NoReturn


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _frozen(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return value


class Struct(dict[str, Any]):
    """A structure or union: a dict of its members that cannot be changed.

    Members are attributes too (``key.port``), and it can be a key of a dict. ``struct | {...}`` is
    one with other values. It equals a dict with the same members.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            known = ", ".join(self)
            raise AttributeError(f"no member {name!r}; there are {known}") from None

    def __or__(self, other: Any) -> Struct:  # type: ignore[override]
        return Struct({**self, **other})

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(_frozen(self))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.items())
        return f"Struct({inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Struct, (dict(self),)

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError(
            "a Struct is a copy of what the map holds and cannot be changed; "
            "write `map[key] = value | {...}`"
        )

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


def make_enum(name: str, values: list[tuple[str, int]]) -> type[enum.IntEnum]:
    """The class of an enumeration of C."""
    return enum.IntEnum(name, values)  # type: ignore[return-value]
