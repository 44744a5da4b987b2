"""A service that does not say rightly when an upload was begun."""

from __future__ import annotations

import lockgate
import pytest
from lockgate import Job, JobOptions

PATH = "tables/events"


@pytest.mark.parametrize("s3", ["moto"], indirect=True)
def test_no_upload_is_given_up_by_its_age_where_the_service_dates_them_wrongly(bucket) -> None:
    """moto dates every upload 2010: a living job's were taken for older than the job, and for nobody's."""
    old = JobOptions(store=bucket.store, upload_alive_seconds=0.0)
    job = Job(bucket.url(PATH), JobOptions(store=bucket.store))
    job.setup()
    attempt = job.task_attempt(task=0, attempt=0)
    attempt.setup()
    attempt.open("a").close()
    receipt = attempt.commit()
    lockgate.collect_garbage(bucket.url(PATH), options=old)
    (kept,) = lockgate.abort_uploads(bucket.url(PATH), older_than=0.0, options=JobOptions(store=bucket.store))
    assert kept.keep == "when an upload was begun, this service does not tell rightly"
    job.commit([receipt])
    assert bucket.files(PATH)["a"] == b""
