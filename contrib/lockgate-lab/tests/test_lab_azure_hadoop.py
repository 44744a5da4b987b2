"""Hadoop's own ABFS connector finds in the Azure emulator what it expects of the service, signatures included."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from lockgate_lab.azure import AzureLab
from lockgate_lab.servers import abfs_class_path, java, or_skip


@pytest.mark.slow
def test_hadoops_connector_writes_renames_lists_and_deletes(azure: AzureLab) -> None:
    azure.on_loop(lambda: azure.account.create("data"))
    program = Path(__file__).with_name("AbfsJudge.java")
    command = [or_skip(java), "-Xmx400m", "-cp", or_skip(abfs_class_path), str(program)]
    settings = {**azure.hadoop_configuration, "fs.azure.enable.client.transaction.id": "true"}
    pairs = [f"{key}={value}" for key, value in settings.items()]
    done = subprocess.run([*command, *pairs], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines() == [
        "mkdirs: true",
        "created twice: false",
        "renamed: true",
        "etag kept: true",
        "renamed without parent: false",
        "renamed what is not there: false",
        f"length: {20 << 20}",
        "listed: b/ big c",
        "directory renamed: true",
        "deleted: true",
        "gone: true",
    ]
    operations = azure.control.counts()["operations"]
    assert operations["RenamePath"] >= 3
    assert operations["AppendFile"] >= 3
    assert operations["DeletePath"] == 1
    assert "Unknown" not in operations
