"""The exceptions of the package: ``Error`` and a class for each category."""

from __future__ import annotations


class Error(Exception):
    """Base class of all errors of Beebox.

    ``str(error)`` names the object, the place and the fact.

    Attributes:
        kind: the category, such as ``"refused"`` or ``"not_found"``.
        message: the text.
        errno: Linux's error number, if Linux has one for it.
        explanation: the explanation of a refused program, of several lines.
        log: the verifier's log of a refused program.
    """

    kind: str = "other"

    def __init_subclass__(cls) -> None:
        cls.__module__ = "beebox"

    def __init__(
        self,
        message: str,
        *,
        errno: int | None = None,
        explanation: str | None = None,
        log: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.errno = errno
        self.explanation = explanation
        self.log = log

    def __str__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        from beebox._html import error_html

        return error_html(self)


# Tracebacks name the classes where users find them.
Error.__module__ = "beebox"


class FileError(Error):
    """A file cannot be read or written."""

    kind = "file"


class LoadError(Error):
    """An object cannot be loaded."""

    kind = "load"


class ObjectError(LoadError):
    """A file is no object of clang, or cannot be linked for the kernel."""

    kind = "object"


class VerifierError(LoadError):
    """The verifier refuses a program, or the kernel a map.

    ``log`` and ``explanation`` are those of the refused program.
    """

    kind = "refused"


class IncompatibleMapError(LoadError):
    """A map of another instance differs from the object's."""

    kind = "incompatible"


class UnsupportedError(Error):
    """Linux does it, and Beebox does not."""

    kind = "unsupported"


class NotFoundError(Error, KeyError):
    """There is no program, map, variable or element of this name or key."""

    kind = "not_found"


class DataTypeError(Error, TypeError):
    """A value is not of the type of the key, value or variable; the text says what fits."""

    kind = "type"


class MapError(Error):
    """An operation on a map failed with ``errno``."""

    kind = "map"


class RunError(Error):
    """A run does not take this packet, context or option."""

    kind = "input"


class LimitError(RunError):
    """A run ended at a limit: time, instructions, or memory of maps."""

    kind = "limit"


class TrapError(RunError):
    """A program that was not verified did what no verified program does."""

    kind = "trap"


class CaptureError(Error):
    """A packet of a capture is damaged or no Ethernet frame."""

    kind = "capture"


class FormatError(Error, ValueError):
    """A text or file is not of its form, or does not fit the object."""

    kind = "format"


class FilterError(Error):
    """A filter is refused, or cannot be compiled."""

    kind = "filter"


class TooComplexError(Error):
    """An analysis of filters or rules goes beyond its budget."""

    kind = "too_complex"


_CLASSES: dict[str, type[Error]] = {
    cls.kind: cls
    for cls in (
        FileError,
        LoadError,
        ObjectError,
        VerifierError,
        IncompatibleMapError,
        UnsupportedError,
        NotFoundError,
        DataTypeError,
        MapError,
        RunError,
        LimitError,
        TrapError,
        CaptureError,
        FormatError,
        FilterError,
        TooComplexError,
    )
}


def make(
    kind: str,
    message: str,
    *,
    errno: int | None = None,
    explanation: str | None = None,
    log: str | None = None,
) -> Error:
    """The exception of a category."""
    cls = _CLASSES.get(kind, Error)
    return cls(message, errno=errno, explanation=explanation, log=log)
