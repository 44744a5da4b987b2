"""What a file format is to the Spark writer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyarrow as pa

from lockgate.model.errors import OptionError
from lockgate.model.option_values import boolean_of
from lockgate.spark.formats.spark_type import is_variant

ATTEMPT_KEY = "lockgate.attempt"
"""Under which a file says which task attempt has written it."""


@dataclass(frozen=True)
class FormatOptions:
    """What a format is told: the compression's name, and its own options by lower-case name.

    `spark_schema` is the schema of the columns in the file as Spark's JSON, `spark_version` the version of Spark;
    both are empty when Spark is not the source. `attempt` is what tells the task attempt that writes from every other,
    or empty: Parquet, ORC and Arrow files hold it beside their schema, so that the same rows of two attempts are not
    the same bytes.
    """

    compression: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    spark_schema: str = ""
    spark_version: str = ""
    attempt: str = ""

    def setting(self, name: str, default: str) -> str:
        """The option `name`, compared in lower case."""
        return self.settings.get(name.lower(), default)

    def flag(self, name: str, default: bool) -> bool:
        """An option that is true or false.

        Raises:
            OptionError: it is neither.
        """
        text = self.setting(name, str(default))
        try:
            return boolean_of(text)
        except ValueError:
            raise OptionError(f"{name} cannot be {text!r}", next_step=f"{name} takes true or false") from None


class FormatWriter(ABC):
    """An open file of one format."""

    @abstractmethod
    def write(self, table: pa.Table) -> None:
        """Append rows. For a format with row groups, each call is one."""

    @abstractmethod
    def close(self) -> None:
        """Finish the content; the file object underneath stays open."""


class FileFormat(ABC):
    """One format: its names, what it accepts, and how a file of it is opened."""

    name: ClassVar[str]
    extension: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()
    """The options that this format understands, besides compression."""
    compressions: ClassVar[Mapping[str, str]]
    """By the name that people give: the name in the file's name, empty where none is put there."""
    default_compression: ClassVar[str]
    chunk_bytes: ClassVar[int]
    """How much uncompressed Arrow memory is gathered before it is written; the size of a row group."""

    def file_extension(self, options: FormatOptions) -> str:
        """The end of a file's name, such as `snappy.parquet` or `csv.gz`."""
        codec = self.compressions[options.compression]
        return f"{codec}.{self.extension}" if codec else self.extension

    @abstractmethod
    def check(self, schema: pa.Schema, options: FormatOptions) -> None:
        """Refuse what this format cannot hold, before anything is written.

        Raises:
            OptionError: a column's type or an option's value is not one of this format's.
        """

    @abstractmethod
    def open(self, file: Any, schema: pa.Schema, options: FormatOptions) -> FormatWriter:
        """Start a file on a binary file object."""


def refuse_types(
    format_name: str, schema: pa.Schema, refused: Mapping[str, Callable[[pa.DataType], bool]], alternative: str
) -> None:
    """Refuse a schema in which a type, nested ones included, is one that a predicate holds for.

    Raises:
        OptionError: of the first such column, with its path, such as `orders.element.price`, and its type.
    """
    for column in schema:
        for path, kind in _types_in(column.name, column.type):
            for what, holds in refused.items():
                if holds(kind):
                    raise OptionError(
                        f"{format_name} files cannot hold {what}",
                        where=f"column {path}: {kind}",
                        next_step=alternative,
                    )


def _types_in(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    yield path, kind
    if pa.types.is_map(kind):
        yield from _types_in(f"{path}.key", kind.key_type)
        yield from _types_in(f"{path}.value", kind.item_type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _types_in(f"{path}.element", kind.value_type)
    elif pa.types.is_struct(kind) and not is_variant(kind):
        for child in kind:
            yield from _types_in(f"{path}.{child.name}", child.type)
