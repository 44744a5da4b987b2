"""The formats by name."""

from __future__ import annotations

import difflib

from lockgate.model.errors import OptionError
from lockgate.spark.formats.arrow import Arrow
from lockgate.spark.formats.csv import Csv
from lockgate.spark.formats.file_format import FileFormat
from lockgate.spark.formats.json import Json
from lockgate.spark.formats.orc import Orc
from lockgate.spark.formats.parquet import Parquet

FORMATS: dict[str, FileFormat] = {each.name: each for each in (Parquet(), Csv(), Json(), Orc(), Arrow())}


def format_named(name: str) -> FileFormat:
    """The format of this name.

    Raises:
        OptionError: there is none.
    """
    found = FORMATS.get(name.lower())
    if found is None:
        near = difflib.get_close_matches(name.lower(), FORMATS, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}? " if near else ""
        raise OptionError(
            f"lockgate does not write the format {name!r}", next_step=f"{hint}format takes {', '.join(FORMATS)}"
        )
    return found
