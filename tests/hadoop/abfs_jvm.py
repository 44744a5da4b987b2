"""Hadoop's ABFS connector and its committers in a Java process of ours.

hadoop-azure and what it needs come from Maven Central, once, into the lab's cache (`abfs_class_path`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from committer_jvm import CommitterJvm
from lockgate_lab.servers import abfs_class_path

FACTORY = "mapreduce.outputcommitter.factory.scheme.abfs"

MANIFEST = MappingProxyType({FACTORY: "org.apache.hadoop.fs.azurebfs.commit.AzureManifestCommitterFactory"})
"""The manifest committer as Hadoop's page "The manifest committer for Azure and Google Cloud Storage" binds it."""

NOT_RESILIENT = MappingProxyType(
    {
        FACTORY: "org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitterFactory",
        "fs.azure.enable.rename.resilience": "false",
    }
)
"""The same without what recovers renames on Azure."""

V1 = MappingProxyType(
    {
        # Named, since Hadoop's `mapred-default.xml` binds the manifest committer to `abfs`.
        FACTORY: "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory",
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
    }
)
"""`FileOutputCommitter`, which is Spark's default."""


class AbfsJvm(CommitterJvm):
    """The Java process; a context manager. `settings` are those of the connector.

    Raises MissingTool, or ServerStartError when the jars cannot be fetched.
    """

    def __init__(self, work: Path, settings: Mapping[str, str]) -> None:
        super().__init__(work, abfs_class_path(), settings)
