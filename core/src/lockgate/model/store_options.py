"""The values of `store.NAME` options that stores of every kind take: plugins read them by these, so that each spelling
holds for all."""

from __future__ import annotations

from lockgate.model.errors import OptionError
from lockgate.model.option_values import boolean_of


def switch_of(name: str, text: str) -> bool:
    """What an option says that is true or false. A misspelt `true` is no `false`: it might send a token in plain text.

    Raises:
        OptionError: it is neither.
    """
    try:
        return boolean_of(text)
    except ValueError as error:
        raise OptionError(f"store.{name} cannot be {text!r}", next_step=f"store.{name} takes true or false") from error


def bytes_of(name: str, text: str, *, least: int, most: int) -> int:
    """A number of bytes, or of K, M or G (KiB, MiB and GiB), as `8M`.

    Raises:
        OptionError: it is none, or out of its range.
    """
    number, shift = (text[:-1], _UNITS[text[-1].upper()]) if text[-1:].upper() in _UNITS else (text, 0)
    if not _is_number(number) or not least <= int(number) << shift <= most:
        raise OptionError(
            f"store.{name} cannot be {text!r}",
            next_step=f"store.{name} takes a number of bytes from {least} to {most}, or one such as 8M",
        )
    return int(number) << shift


def number_of(name: str, text: str, *, least: int, most: int) -> int:
    """A whole number.

    Raises:
        OptionError: it is none, or out of its range.
    """
    if not _is_number(text) or not least <= int(text) <= most:
        raise OptionError(
            f"store.{name} cannot be {text!r}", next_step=f"store.{name} takes a whole number from {least} to {most}"
        )
    return int(text)


_UNITS = {"K": 10, "M": 20, "G": 30}


def _is_number(text: str) -> bool:
    # A longer one is no size, and Python refuses to read thousands of digits.
    return text.isascii() and text.isdecimal() and len(text) <= 20
