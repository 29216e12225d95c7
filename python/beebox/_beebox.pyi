"""The extension module; ``beebox`` exports what it has."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, final, overload
from typing_extensions import Buffer
