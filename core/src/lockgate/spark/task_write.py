"""One task attempt's rows to files: split by partition, gathered in memory, written in pieces of a sensible size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from lockgate.api.task_attempt import TaskAttempt
from lockgate.api.task_file import TaskFile
from lockgate.spark.formats.file_format import FormatOptions, FormatWriter
from lockgate.spark.split_partitions import PartitionSplitter
from lockgate.spark.write_options import WriteOptions

SPLIT_BYTES = 8 << 20
"""Batches are gathered to this before they are split: one split of many rows is cheaper than many of few."""


@dataclass
class _Partition:
    """What a partition has in memory, and its open file if it has one. `rows_in_file` counts both."""

    directory: str
    waiting: list[pa.RecordBatch] = field(default_factory=list)
    waiting_bytes: int = 0
    rows_in_file: int = 0
    file: TaskFile | None = None
    writer: FormatWriter | None = None


class TaskWrite:
    """Takes batches, leaves files in a task attempt. `rows` and `files` count what was written."""

    def __init__(
        self,
        attempt: TaskAttempt,
        options: WriteOptions,
        schema: pa.Schema,
        format_options: FormatOptions,
        file_stem: str,
    ) -> None:
        self._attempt = attempt
        self._options = options
        self._splitter = PartitionSplitter(schema, options.partition_by)
        self._format = options.file_format
        self._format_options = format_options
        self._chunk_bytes = options.row_group_bytes or self._format.chunk_bytes
        self._gather_bytes = min(SPLIT_BYTES, options.write_memory_bytes // 4)
        self._stem = file_stem
        self._partitions: dict[str, _Partition] = {}
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._waiting_bytes = 0
        self._open: dict[str, _Partition] = {}
        """The partitions with an open file; the one that was longest not written to comes first."""
        self.rows = 0
        self.files = 0
        self._format.check(self._splitter.schema, format_options)

    def write(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Take all of a task's batches."""
        for batch in batches:
            if not batch.num_rows:
                continue
            self.rows += batch.num_rows
            self._gathered.append(batch)
            self._gathered_bytes += batch.nbytes
            if self._gathered_bytes >= self._gather_bytes:
                self._split()
        self._split()

    def close(self, *, at_least_one: bool) -> None:
        """Write what waits and close every file. `at_least_one`: a task without rows leaves a file that holds the
        schema, so that an empty table can be read."""
        if at_least_one and not self.files and not self._partitions and not self._options.partition_by:
            self._open_file(self._partition(""))
        for partition in self._partitions.values():
            self._flush(partition)
            self._close(partition)

    def discard(self) -> None:
        """Give every open file up."""
        for partition in self._partitions.values():
            if partition.file is not None:
                partition.file.discard()

    def _split(self) -> None:
        if not self._gathered:
            return
        whole = pa.Table.from_batches(self._gathered).combine_chunks()
        self._gathered, self._gathered_bytes = [], 0
        for batch in whole.to_batches():
            for directory, rows in self._splitter.split(batch):
                self._take(self._partition(directory), rows)
        while self._waiting_bytes > self._options.write_memory_bytes:
            largest = max(self._partitions.values(), key=lambda each: each.waiting_bytes)
            self._flush(largest)

    def _partition(self, directory: str) -> _Partition:
        found = self._partitions.get(directory)
        if found is None:
            found = self._partitions[directory] = _Partition(directory)
        return found

    def _take(self, partition: _Partition, rows: pa.RecordBatch) -> None:
        limit = self._options.max_records_per_file
        while limit and partition.rows_in_file + rows.num_rows > limit:
            room = limit - partition.rows_in_file
            self._keep(partition, rows.slice(0, room))
            rows = rows.slice(room)
            self._flush(partition)
            self._close(partition)
        if rows.num_rows:
            self._keep(partition, rows)
            if partition.waiting_bytes >= self._chunk_bytes:
                self._flush(partition)

    def _keep(self, partition: _Partition, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            partition.waiting.append(rows)
            partition.waiting_bytes += rows.nbytes
            partition.rows_in_file += rows.num_rows
            self._waiting_bytes += rows.nbytes

    def _flush(self, partition: _Partition) -> None:
        if not partition.waiting:
            return
        if partition.writer is None:
            self._open_file(partition)
        assert partition.writer is not None
        self._open[partition.directory] = self._open.pop(partition.directory)
        partition.writer.write(pa.Table.from_batches(partition.waiting))
        self._waiting_bytes -= partition.waiting_bytes
        partition.waiting, partition.waiting_bytes = [], 0

    def _open_file(self, partition: _Partition) -> None:
        while len(self._open) >= self._options.max_open_files:
            oldest = next(iter(self._open.values()))
            self._flush(oldest)  # its rows are counted as this file's
            self._close(oldest)
        extension = self._format.file_extension(self._format_options)
        name = f"{self._stem}.c{self.files:03d}.{extension}"
        partition.file = self._attempt.open(f"{partition.directory}/{name}" if partition.directory else name)
        partition.writer = self._format.open(partition.file, self._splitter.schema, self._format_options)
        self.files += 1
        self._open[partition.directory] = partition

    def _close(self, partition: _Partition) -> None:
        if partition.writer is not None and partition.file is not None:
            partition.writer.close()
            partition.file.close()
            partition.writer = partition.file = None
            del self._open[partition.directory]
        partition.rows_in_file = 0
