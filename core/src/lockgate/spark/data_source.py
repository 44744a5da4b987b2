"""The data source that PySpark finds by itself under the name `lockgate`.

PySpark imports this module to learn the name, so it imports nothing that may be missing: what needs pyarrow is
imported when a write begins.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from lockgate.model.errors import UsageError
from lockgate.spark.error_answer import ANSWER_OPTION, answering
from lockgate.spark.requirements import require_pyarrow


class LockgateDataSource(DataSource):
    """Writes only: what Lockgate leaves are plain files, which every reader reads without Lockgate."""

    @classmethod
    def name(cls) -> str:
        """The name that `format()` takes."""
        return "lockgate"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write.

        Raises:
            LockgateError: the destination, an option, a column or their combination is not acceptable, or a package
                is missing.
        """
        with answering(self.options.get(ANSWER_OPTION, "")):
            require_pyarrow("the Python that Spark started to plan the write")
            from lockgate.spark.batch_writer import BatchWriter
            from lockgate.spark.write_options import WriteOptions

            return BatchWriter(WriteOptions.parse(self.options, mode="overwrite" if overwrite else "append"), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """A streaming write.

        Raises:
            LockgateError: as for `writer`.
        """
        require_pyarrow("the Python that Spark started to plan the write")
        from lockgate.spark.stream_writer import StreamWriter
        from lockgate.spark.write_options import WriteOptions

        return StreamWriter(WriteOptions.parse(self.options, mode="complete" if overwrite else "stream"), schema)

    def schema(self) -> NoReturn:
        """Spark asks for it to read.

        Raises:
            UsageError: always.
        """
        raise self._writes_only()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Spark asks for it to read with a schema that it was given, or that a table has.

        Raises:
            UsageError: always.
        """
        raise self._writes_only()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Spark asks for it to read a stream.

        Raises:
            UsageError: always.
        """
        raise self._writes_only()

    def _writes_only(self) -> UsageError:
        path = self.options.get("path", "")
        return UsageError(
            "lockgate is a format to write with, and what it has written are plain files",
            where=path,
            next_step="read with the format of the files, such as "
            f'spark.read.parquet("{path or "url"}"); a table of the catalog is made over them with '
            f"CREATE TABLE name USING parquet LOCATION '{path or 'url'}'",
        )
