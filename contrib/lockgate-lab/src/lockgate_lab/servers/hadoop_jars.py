"""Hadoop's jars, fetched with Maven once, pinned, into the lab's cache."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lockgate_lab.server_process import ServerStartError
from lockgate_lab.servers.cache import fetched_once
from lockgate_lab.servers.missing_tool import MissingTool, executable

HADOOP_VERSION = "3.5.0"
JAVA_VERSION_MIN = 17
_CLIENT = {
    "org.apache.hadoop:hadoop-client-api": HADOOP_VERSION,
    "org.apache.hadoop:hadoop-client-runtime": HADOOP_VERSION,
    "org.slf4j:slf4j-simple": "1.7.36",
}
_MINI_CLUSTER = {
    **_CLIENT,
    "org.apache.hadoop:hadoop-client-minicluster": HADOOP_VERSION,
    "org.mockito:mockito-core": "4.11.0",  # MiniDFSCluster needs it and does not bring it
}
_YARN_BESIDE = {
    "ch.qos.reload4j:reload4j": "1.2.22",
    "org.bouncycastle:bcpkix-jdk18on": "1.78.1",
}
"""What Hadoop's jar of mini clusters leaves out and a ResourceManager needs."""

_ABFS = {
    **_CLIENT,
    "org.apache.hadoop:hadoop-azure": HADOOP_VERSION,
    "org.wildfly.openssl:wildfly-openssl": "2.2.5.Final",
    "org.apache.httpcomponents:httpclient": "4.5.14",
    "com.fasterxml.jackson.core:jackson-databind": "2.15.3",
    "org.apache.commons:commons-lang3": "3.18.0",
    "commons-io:commons-io": "2.16.1",
}
_AWS_SDK_VERSION = "2.35.4"
"""The one that Hadoop 3.5.0 is built with (`aws-java-sdk-v2.version` in its hadoop-project's pom)."""

_S3A = {
    **_CLIENT,
    "org.apache.hadoop:hadoop-aws": HADOOP_VERSION,
    "software.amazon.awssdk:s3": _AWS_SDK_VERSION,
    "software.amazon.awssdk:s3-transfer-manager": _AWS_SDK_VERSION,
    "software.amazon.awssdk:sts": _AWS_SDK_VERSION,
    "software.amazon.awssdk:apache-client": _AWS_SDK_VERSION,
    "software.amazon.awssdk:netty-nio-client": _AWS_SDK_VERSION,
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3": "1.3.1",
    "org.wildfly.openssl:wildfly-openssl": "2.2.5.Final",
    "com.fasterxml.jackson.core:jackson-databind": "2.15.3",
    "org.apache.commons:commons-lang3": "3.18.0",
    "commons-io:commons-io": "2.16.1",
}
SUITE_VERSION = "3.4.2"
"""The latest release of Hadoop whose tests of the connector are on Maven Central."""

_ABFS_SUITE = {
    "org.apache.hadoop:hadoop-azure": SUITE_VERSION,
    "org.apache.hadoop:hadoop-azure:test-jar": SUITE_VERSION,
    "org.apache.hadoop:hadoop-common": SUITE_VERSION,
    "org.apache.hadoop:hadoop-common:test-jar": SUITE_VERSION,
    "org.apache.hadoop:hadoop-mapreduce-client-core": SUITE_VERSION,
    "org.apache.hadoop:hadoop-mapreduce-client-core:test-jar": SUITE_VERSION,
    "junit:junit": "4.13.2",
    "org.junit.platform:junit-platform-console-standalone": "1.10.2",
    "org.mockito:mockito-inline": "4.11.0",
    "org.assertj:assertj-core": "3.12.2",
}
_SPARK_AVRO = {"org.apache.spark:spark-avro_2.13": "4.1.1"}
"""The newest on Maven Central when this was written; it serves Spark 4.3 as well."""

HUDI_VERSIONS = ("0.15.0", "1.0.2")
"""The last before Hudi 1, and the newest of Hudi 1 whose timeline service is on Maven Central: later releases list it
among what they need, and it is not there."""

_HUDI = {
    "org.apache.hudi:hudi-client-common": "0.15.0",
    "org.apache.hudi:hudi-timeline-service": "0.15.0",
}
_HUDI_1 = {
    **_CLIENT,
    "org.apache.hudi:hudi-client-common": "1.0.2",
    "org.apache.hudi:hudi-common": "1.0.2",
    "org.apache.hudi:hudi-hadoop-common": "1.0.2",
    "org.apache.hudi:hudi-io": "1.0.2",
    "org.apache.hudi:hudi-timeline-service": "1.0.2",
    "com.fasterxml.jackson.core:jackson-databind": "2.15.2",
    "com.fasterxml.jackson.module:jackson-module-afterburner": "2.15.2",
    "io.javalin:javalin": "4.6.7",
    "org.apache.httpcomponents:fluent-hc": "4.5.14",
}
"""Hudi 1 alone, and what its markers use of the rest: its own description names repositories beside Central that Maven
would have to ask for each of them."""

_GCS_CONNECTOR = {"com.google.cloud.bigdataoss:gcs-connector:jar:shaded": "4.0.4"}
"""Google's connector of Hadoop to Cloud Storage, with all that it needs in its one jar."""

_HIVE = {"org.apache.hive:hive-exec": "4.0.1"}
"""Hive 4, with all that it needs of itself; PySpark brings Hive 2.3."""

_ALONE = frozenset(
    {
        "org.apache.hive:hive-exec",
        "org.apache.spark:spark-avro_2.13",
        "com.google.cloud.bigdataoss:gcs-connector:jar:shaded",
        "org.apache.hadoop:hadoop-azure",
        "org.apache.hadoop:hadoop-aws",
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3",
    }
)
"""What comes without its own dependencies: the shaded client has them, or, for S3A, the SDK's modules stand for its
bundle of 600 MB."""

_HUDI_ALONE = frozenset(name for name in _HUDI_1 if name.startswith("org.apache.hudi:"))

_JAVA_REMEDY = "a JDK 17, such as Debian's openjdk-17-jdk-headless"
_MAVEN_REMEDY = "Maven 3.8 or newer, such as Debian's maven (it fetches Hadoop's jars once)"


def mini_cluster_class_path() -> str:
    """Return the class path of MiniDFSCluster; raises MissingTool, or ServerStartError when they cannot be fetched."""
    return f"{_fetched('minicluster', _MINI_CLUSTER)}/*"


def yarn_class_path() -> str:
    """Return the class path of YARN's daemons; raises as `mini_cluster_class_path`."""
    return f"{mini_cluster_class_path()}:{_fetched('yarn-beside', _YARN_BESIDE)}/*"


def abfs_class_path() -> str:
    """Return the class path of a Hadoop client that knows `abfs://`; raises as `mini_cluster_class_path`."""
    return f"{_fetched('abfs', _ABFS, _ALONE)}/*"


def s3a_class_path() -> str:
    """Return the class path of a Hadoop client that knows `s3a://`; raises as `mini_cluster_class_path`."""
    return f"{_fetched('s3a', _S3A, _ALONE)}/*"


def spark_avro_jar() -> str:
    """Return the jar with Spark's format `avro`, which PySpark does not bring; raises as `mini_cluster_class_path`."""
    (jar,) = _fetched("spark-avro", _SPARK_AVRO, _ALONE).glob("spark-avro_*.jar")
    return str(jar)


def abfs_connector_jars() -> list[str]:
    """Return the jars by which a Spark session knows `abfs://`: the rest of `abfs_class_path` it has; raises as
    `mini_cluster_class_path`."""
    found = _fetched("abfs", _ABFS, _ALONE)
    return [str(jar) for name in ("hadoop-azure", "wildfly-openssl") for jar in found.glob(f"{name}-*.jar")]


def gcs_connector_jar() -> str:
    """Return Google's jar by which a Spark session knows `gs://`; raises as `mini_cluster_class_path`."""
    (jar,) = _fetched("gcs-connector", _GCS_CONNECTOR, _ALONE).glob("gcs-connector-*.jar")
    return str(jar)


def hive_jar() -> str:
    """Return the jar with Hive's own execution classes; raises as `mini_cluster_class_path`."""
    (jar,) = _fetched("hive", _HIVE, _ALONE).glob("hive-exec-*.jar")
    return str(jar)


def abfs_suite_class_path() -> str:
    """Return the class path of Hadoop's own tests of its ABFS connector, with JUnit's console to run them; raises as
    `mini_cluster_class_path`."""
    return f"{_fetched('abfs-suite', _ABFS_SUITE)}/*"


def hudi_class_path(version: str) -> str:
    """Return the class path of Hudi's client and its timeline service, of one of `HUDI_VERSIONS`; raises as
    `mini_cluster_class_path`."""
    jars, alone = {"0.15.0": (_HUDI, frozenset[str]()), "1.0.2": (_HUDI_1, _HUDI_ALONE)}[version]
    return f"{_fetched('hudi', jars, alone)}/*"


def java() -> str:
    """Return a `java` that runs Hadoop and single Java source files; raises MissingTool."""
    found = executable("java", "Hadoop", _JAVA_REMEDY)
    asked = subprocess.run([found, "-XshowSettings:properties", "-version"], capture_output=True, text=True)
    for line in asked.stderr.splitlines():
        name, _, value = line.strip().partition(" = ")
        if name == "java.specification.version" and float(value) < JAVA_VERSION_MIN:
            raise MissingTool(f"Java {JAVA_VERSION_MIN} or newer (found {value})", "Hadoop", _JAVA_REMEDY)
    return found


def _fetched(what: str, jars: Mapping[str, str], alone: frozenset[str] = frozenset()) -> Path:
    # A change of the list is another directory, so a cache of an older version of the lab is never taken for it.
    digest = hashlib.sha256(json.dumps(jars, sort_keys=True).encode()).hexdigest()[:8]
    return fetched_once(f"hadoop-{HADOOP_VERSION}-{what}-{digest}", lambda directory: _fetch(directory, jars, alone))


def _fetch(directory: Path, jars: Mapping[str, str], alone: frozenset[str]) -> None:
    maven = executable("mvn", "Hadoop", _MAVEN_REMEDY)
    project = directory / "pom.xml"
    project.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>lockgate</groupId><artifactId>lab</artifactId><version>1</version><dependencies>"
        + "".join(_dependency(name, version, name in alone) for name, version in jars.items())
        + "</dependencies></project>"
    )
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    command = [maven, "-q", "-B", "-f", str(project), goal, f"-DoutputDirectory={directory}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ServerStartError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-2000:]}")


def _dependency(name: str, version: str, is_alone: bool) -> str:
    group, artifact, *more = name.split(":")
    kinds = "".join(f"<{tag}>{value}</{tag}>" for tag, value in zip(("type", "classifier"), more, strict=False))
    nothing = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{kinds}{nothing if is_alone else ''}</dependency>"
    )
