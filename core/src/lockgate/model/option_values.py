"""What one option's value may be: how a text is read, what is checked, and how a bad value is told.

The rules of each option are in its row of the table (`model/options.py`), as metadata of its field.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lockgate.model.durations import milliseconds_of, seconds_of
from lockgate.model.errors import OptionError, PathError
from lockgate.model.redaction import names_a_secret, redact
from lockgate.model.urls import check_relative, parse_url


def boolean_of(text: str) -> bool:
    """What an option says that is true or false: `true`, `t`, `yes`, `1` or `on`, or their opposites.

    Raises:
        ValueError: it is neither.
    """
    lowered = text.strip().lower()
    if lowered in ("true", "yes", "1", "on", "t"):
        return True
    if lowered in ("false", "no", "0", "off", "f"):
        return False
    raise ValueError("not true or false")


def _names(text: str) -> tuple[str, ...]:
    if text.lstrip().startswith("["):
        names = json.loads(text)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("not an array of names")
        return tuple(names)
    return tuple(name.strip() for name in text.split(",") if name.strip())


_SIZE = re.compile(r"(-?[0-9]+)\s*([kmgt]i?b?|b(?:ytes)?)?", re.IGNORECASE)


def integer_of(text: str) -> int:
    """The whole number that a text says; one of bytes may have a unit: `64m` is 64 MiB.

    Raises:
        ValueError: it is none.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a whole number")
    factor = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}[(match.group(2) or "")[:1].lower()]
    return int(match.group(1)) << factor


_PARSERS: dict[str, Callable[[str], Any]] = {
    "str": str,
    "bool": boolean_of,
    "bool | None": boolean_of,
    "int": integer_of,
    "float": float,
    "seconds": seconds_of,
    "milliseconds": milliseconds_of,
    "tuple[str, ...]": _names,
}


def parser_of(spec: dataclasses.Field[Any]) -> Callable[[str], Any]:
    """What reads an option's value where it is text; it raises ValueError for a text that it cannot read."""
    return _PARSERS[_kind(spec)]


def _kind(spec: dataclasses.Field[Any]) -> str:
    """What a value is parsed and checked as: the field's type, `str` for a choice, `seconds` or `milliseconds` for a
    length of time."""
    if spec.metadata["unit"] in ("s", "ms"):
        return "seconds" if spec.metadata["unit"] == "s" else "milliseconds"
    return "str" if str(spec.type).startswith("Literal[") else str(spec.type)


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "bool | None": (bool, type(None)),
    "int": (int,),
    "float": (int, float),
    "seconds": (int, float),
    "milliseconds": (int,),
    "tuple[str, ...]": (tuple, list),
    "Mapping[str, str]": (Mapping,),
}


@dataclass(frozen=True)
class _Form:
    """What a text must look like, and how that is said to who gave another."""

    holds: Callable[[str], bool]
    wanted: str


_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|(?!-)[^\s:/\[\]\x00-\x1f\x7f]+)"


def _is_place(text: str) -> bool:
    try:
        parse_url(text) if "://" in text or text.startswith(("/", "file:")) else check_relative(text.rstrip("/"))
    except PathError:
        return False
    return True


def _has_port(text: str, least: int = 0) -> bool:
    """Whether there is no port, or one that can be; 0 is a free one, which only who listens can ask for."""
    port = re.fullmatch(r".*:([0-9]{1,5})", text)
    return port is None or least <= int(port[1]) < 1 << 16


_FORMS = {
    "local directory": _Form(
        lambda text: text.startswith("/") and "\0" not in text,
        "an absolute path on the local disk, such as /mnt/scratch",
    ),
    "local socket": _Form(
        lambda text: text.startswith("/") and "\0" not in text,
        "an absolute path of a socket, such as lockgate.spark.distribute gives",
    ),
    "address": _Form(
        lambda text: bool(re.fullmatch(rf"{_HOST}(?::[0-9]{{1,5}})?", text)) and _has_port(text),
        "HOST or HOST:PORT, such as driver.example or driver.example:26754",
    ),
    "server": _Form(
        lambda text: bool(re.fullmatch(rf"{_HOST}:[0-9]{{1,5}}", text)) and _has_port(text, 1),
        "HOST:PORT, such as driver.example:26754",
    ),
    "place": _Form(_is_place, "a path below the destination, or a URL"),
}
"""By the name that `_option` gives."""


def checked(spec: dataclasses.Field[Any], value: Any) -> Any:
    """The value as a `JobOptions` holds it.

    Raises:
        OptionError: it is of the wrong type, outside its range, or none of the choices.
    """
    kind = _kind(spec)
    result: Any = value
    if isinstance(value, str) and kind in _PARSERS:
        with contextlib.suppress(ValueError):
            value = result = _PARSERS[kind](value)
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and "bool" not in kind):
        raise OptionError(f"{spec.name} cannot be {shown(spec.name, value)}", next_step=wanted_of(spec))
    choices, least = spec.metadata["choices"], spec.metadata["least"]
    if isinstance(value, str) and value.lower() in choices:  # Hudi writes some in capitals
        value = result = value.lower()
    if choices and value not in choices:
        near = difflib.get_close_matches(value, choices, n=1)
        suggestion = f"did you mean {near[0]}? " if near else ""
        raise OptionError(f"{spec.name} cannot be {shown(spec.name, value)}", next_step=suggestion + wanted_of(spec))
    most = spec.metadata["most"]
    if (least is not None and not value >= least) or (most is not None and not value <= most):
        raise OptionError(f"{spec.name} cannot be {shown(spec.name, value)}", next_step=wanted_of(spec))
    form = _FORMS.get(spec.metadata["form"])
    if form is not None and value and not form.holds(str(value)):
        raise OptionError(f"{spec.name} cannot be {shown(spec.name, value)}", next_step=wanted_of(spec))
    if not all(_is_text(each) for each in _texts_in(result)):
        # `store` holds credentials.
        where = "" if isinstance(value, Mapping) else ascii(value)
        raise OptionError(f"{spec.name} is not Unicode text", where=where, next_step=wanted_of(spec))
    if kind == "tuple[str, ...]":
        return tuple(result)
    if kind == "Mapping[str, str]":
        return {str(key): str(each) for key, each in result.items()}
    return float(result) if kind in ("float", "seconds") else result


def _texts_in(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, tuple | list) else [value]


def _is_text(value: Any) -> bool:
    """Whether a job's marker, its record and `_SUCCESS`, which are JSON, can hold it."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(name: str, value: Any) -> str:
    """A value as an error shows it: without what may be a secret."""
    return "that" if names_a_secret(name) else redact(repr(value))


def wanted_of(spec: dataclasses.Field[Any]) -> str:
    """What an option takes, for the next step of who gave something else."""
    kinds = {
        "str": "a string",
        "bool": "true or false",
        "bool | None": "true or false",
        "int": "a whole number",
        "float": "a number",
        "seconds": "seconds, or a length of time such as 90s, 5m or 2h,",
        "milliseconds": "whole milliseconds, or a length of time such as 50ms or 1s,",
        "tuple[str, ...]": "names with commas between them",
        "Mapping[str, str]": "a mapping",
    }
    wanted = " or ".join(spec.metadata["choices"]) or kinds[_kind(spec)]
    if form := _FORMS.get(spec.metadata["form"]):
        wanted = form.wanted
    if spec.metadata["least"] is not None:
        wanted += f" from {spec.metadata['least']}"
    if spec.metadata["most"] is not None:
        wanted += f" to {spec.metadata['most']:,}"
    if spec.metadata["unit"] == "bytes":
        wanted += ", also as 64k, 8m or 1g"
    return f"{spec.name} takes {wanted}"
