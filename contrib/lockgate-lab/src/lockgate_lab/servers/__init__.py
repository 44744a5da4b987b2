"""Real servers for tests: Azurite, fake-gcs-server, versitygw, moto and MinIO for S3, an HDFS of one
NameNode and one DataNode, and a YARN of one node.

Each is a context manager that listens on free loopback ports and ends only what it started. What a machine lacks is
said by `MissingTool`, with the command that installs it; `start_or_skip` turns that into a skipped test, or, where the
environment has CI=true, into a failed one.
"""

from lockgate_lab.servers.azurite import Azurite
from lockgate_lab.servers.fake_gcs import FakeGcsServer
from lockgate_lab.servers.hadoop_jars import (
    HUDI_VERSIONS,
    abfs_class_path,
    abfs_connector_jars,
    abfs_suite_class_path,
    gcs_connector_jar,
    hive_jar,
    hudi_class_path,
    java,
    mini_cluster_class_path,
    s3a_class_path,
    spark_avro_jar,
    yarn_class_path,
)
from lockgate_lab.servers.hdfs import MiniHdfs
from lockgate_lab.servers.minio import MinioServer
from lockgate_lab.servers.missing_tool import MissingTool, or_skip, start_or_skip
from lockgate_lab.servers.moto_s3 import MotoServer
from lockgate_lab.servers.versity import VersityGateway, VersityGatewayOfVersions
from lockgate_lab.servers.yarn import MiniYarn

__all__ = [
    "HUDI_VERSIONS",
    "Azurite",
    "FakeGcsServer",
    "MiniHdfs",
    "MiniYarn",
    "MinioServer",
    "MissingTool",
    "MotoServer",
    "VersityGateway",
    "VersityGatewayOfVersions",
    "abfs_class_path",
    "abfs_connector_jars",
    "abfs_suite_class_path",
    "gcs_connector_jar",
    "hive_jar",
    "hudi_class_path",
    "java",
    "mini_cluster_class_path",
    "or_skip",
    "s3a_class_path",
    "spark_avro_jar",
    "start_or_skip",
    "yarn_class_path",
]
