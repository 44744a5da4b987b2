"""The example plugin keeps what it declares: all that a third party has to write."""

from __future__ import annotations

from typing import Any

import pytest
from lockgate import JobOptions
from lockgate.model.urls import parse_url
from lockgate_sftp import CAPABILITIES
from lockgate_sftp.store import SftpStore
from lockgate_testkit import Effort, StoreContract, StoreFactory


class TestSftp(StoreContract):
    capabilities = CAPABILITIES
    identity_seconds = 1.1
    # Its server is Python, in the process of the tests, and each file is a dozen requests.
    effort = Effort(racers=4, rounds=8, entries=600, batch=200)

    @pytest.fixture
    def lockgate_store_factory(self, sftp: Any, sftp_options: JobOptions) -> StoreFactory:
        return lambda place: SftpStore(parse_url(f"{sftp.url}/{place}"), sftp_options)
