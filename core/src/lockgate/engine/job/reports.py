"""What is kept of a job elsewhere: its summary, on success and on failure, and its manifests.

Seed: `summary.report.directory`, `diagnostics.manifest.directory`; file names as Hadoop 3.5.0 gives them
(`ManifestCommitterConstants.SUMMARY_FILENAME_FORMAT`). A report that cannot be written is logged: it never fails a
job, and never hides why one failed.
"""

from __future__ import annotations

import contextlib

from lockgate.engine.job.conflicts import is_hidden
from lockgate.engine.job.locations import place_of
from lockgate.engine.record.summaries import failure_summary
from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Store
from lockgate.model.capabilities import Capability
from lockgate.model.errors import FileExists, OptionError
from lockgate.model.layout import is_reserved
from lockgate.model.record import CommitRecord
from lockgate.model.summary import Summary, encode_summary
from lockgate.model.undone import Undone


async def refuse_reports_among_data(run: JobRun) -> None:
    """Make sure that what is kept of the job is not put where readers of the destination take it for data.

    Raises:
        OptionError: such a directory is the destination, or is in it and not hidden; or it is one of those that
            committers keep for themselves, whose content is taken for jobs and for garbage.
    """
    own = str(run.store.place).rstrip("/")
    for name in ("summary_report_directory", "diagnostics_manifest_directory"):
        if not (given := getattr(run.options, name)):
            continue
        place = str(await place_of(run, given)).rstrip("/")
        if not f"{place}/".startswith(f"{own}/"):
            continue
        inside = place[len(own) + 1 :]
        kept = is_reserved(inside)
        if kept or not is_hidden(f"{inside}/"):
            what = "committers keep their own files" if kept else "readers of the destination find its data"
            raise OptionError(
                f"{name} is where {what}",
                where=f"{name}={given}\n{run.store.url}",
                next_step="name a directory beside the destination, or one in it whose name begins with `_`, such as "
                "_reports",
            )


async def report_success(run: JobRun, summary: Summary) -> None:
    """Save the summary and the manifests where the options ask for them."""
    await _save_summary(run, summary)
    await _keep_manifests(run)


async def report_failure(run: JobRun, record: CommitRecord | None, error: BaseException) -> None:
    """Save the report of a failure, and the manifests, where the options ask for them."""
    run.emit("job-fails", error=type(error).__name__)
    await _save_summary(run, failure_summary(run, record, error))
    await _keep_manifests(run)


async def report_abort(run: JobRun, stage: str, error: BaseException | None = None) -> None:
    """Save the report of an abort, unless there is a report already: why a commit failed must not be hidden by the
    abort that followed (Hadoop `ManifestCommitter.abortJob`)."""
    before, run.stage_now = run.stage_now, stage
    await _save_summary(run, failure_summary(run, None, error), replace=False)
    run.stage_now = before


async def _save_summary(run: JobRun, summary: Summary, *, replace: bool = True) -> None:
    directory = run.options.summary_report_directory
    if not directory:
        return
    name = f"summary-{run.layout.job_id}.json"
    try:
        store = await run.open_store(directory)
        await _make(store, "")
        if replace:
            await store.write_file(name, encode_summary(summary))
        else:
            with contextlib.suppress(FileExists):
                await store.create_file(name, encode_summary(summary))
    except Exception as error:
        run.log.warning("the summary could not be saved", directory=directory, name=name, error=str(error))


async def _keep_manifests(run: JobRun) -> None:
    directory = run.options.diagnostics_manifest_directory
    if not directory:
        return
    try:
        store = await run.open_store(directory)
        await _make(store, run.layout.job_id)
        async for page in run.store.list_directory(run.layout.manifests):
            paths = [status.path for status in page if not status.is_directory]
            for start in range(0, len(paths), 64):
                some = paths[start : start + 64]
                contents = await run.store.read_files(some, bytes_max=run.options.manifest_bytes_max)
                for path, content in zip(some, contents, strict=True):
                    if content is not None:
                        await store.write_file(f"{run.layout.job_id}/{path.rpartition('/')[2]}", content)
    except Exception as error:
        run.log.warning("the manifests could not be kept", directory=directory, error=str(error))


async def _make(store: Store, path: str) -> None:
    if Capability.REAL_DIRECTORIES in store.capabilities:
        await store.make_directories([path])


def tell_undone(run: JobRun, undone: Undone) -> None:
    """Tell those who only listen what an undoing could not make as it was: gc, or a job of the same transaction id, may
    be the one who undoes."""
    if undone.missing or undone.stays:
        run.emit("not-all-restored", missing=list(undone.missing), left=undone.stays)
        run.log.warning(
            "the destination was restored" + str(undone),
            missing=undone.missing,
            left=undone.stays,
        )
    if undone.may_stay:
        run.log.warning(undone.may_stay, job=run.layout.job_id)
