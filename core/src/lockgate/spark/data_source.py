"""The data source that PySpark finds by itself under the name `lockgate`."""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from lockgate.model.errors import UsageError
from lockgate.spark.batch_writer import BatchWriter
from lockgate.spark.stream_writer import StreamWriter
from lockgate.spark.write_options import WriteOptions


class LockgateDataSource(DataSource):
    """Writes only: what Lockgate leaves are plain files, which every reader reads without Lockgate."""

    @classmethod
    def name(cls) -> str:
        """The name that `format()` takes."""
        return "lockgate"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch write.

        Raises:
            LockgateError: the destination, an option or their combination is not acceptable.
        """
        return BatchWriter(WriteOptions.parse(self.options, overwrite=overwrite), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """A streaming write.

        Raises:
            LockgateError: as for `writer`.
        """
        return StreamWriter(WriteOptions.parse(self.options, overwrite=overwrite), schema)

    def schema(self) -> NoReturn:
        """Spark asks for it to read.

        Raises:
            UsageError: always.
        """
        path = self.options.get("path", "the destination")
        raise UsageError(
            "lockgate is a format to write with",
            next_step=f'read with the format of the files, such as spark.read.parquet("{path}")',
        )
