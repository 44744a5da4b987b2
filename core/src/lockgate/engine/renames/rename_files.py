"""Renames in bulk, each with a known outcome.

Seed: "File rename"; Hadoop `RenameFilesStage` and `ManifestStoreOperations.commitFile`. A batch goes to the store
whole. What does not come back as renamed is looked at: the source is probed before the target, since a request
still under way may rename between the two probes, and in this order we can then only see both, which is looked at
again, never neither, which would look like loss. Then the recovery hook decides. Recovery never guesses.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.engine.run.job_run import JobRun
from lockgate.engine.run.store import Progress
from lockgate.engine.run.tries import TRIES, wait_to_try_again
from lockgate.model.commands import command
from lockgate.model.errors import CommitFailed, OutcomeUnknown
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed, RenameOutcome, Unknown
from lockgate.model.urls import parent_of


async def rename_all(
    run: JobRun,
    renames: Sequence[Rename],
    progress: Progress,
    *,
    make_parents: bool = False,
    own_target: bool = False,
    may_be_gone: bool = False,
    where_taken: str = "choose delete_target_files or another conflict policy, or give the files other names",
) -> list[Renamed]:
    """Rename every file, or raise; answers in order. A rename that has taken place already is found out and
    counted as recovered, so the call can be repeated after any failure. `own_target`: nobody but this job renames to
    these targets, so what stands there with the right identity was renamed, whatever stands at the source by now.

    `may_be_gone`: of a file that is at neither end somebody else has made an end, which is what was wanted of it; it
    is not among the answers.

    `make_parents`: a target's directory that is not there, since another job's rollback has found it empty, is made
    again. Never for targets in a job's own directory, which may be over. `where_taken`: what to do next where a target
    exists.

    Raises:
        CommitFailed: a rename was surely refused: its target exists, or its source has changed.
        OutcomeUnknown: both ends are not as the rename would leave them, nor as it would find them.
    """
    outcomes: list[RenameOutcome] = await run.store.rename_files(renames, progress)
    run.count("op_rename", len(renames))
    by_the_store = sum(isinstance(outcome, Renamed) and outcome.recovered for outcome in outcomes)
    if by_the_store:
        run.count("commit_file_rename_recovered", by_the_store)
    doubtful = [index for index, outcome in enumerate(outcomes) if not isinstance(outcome, Renamed)]
    for attempt in range(TRIES):
        if not doubtful:
            break
        if attempt:
            await wait_to_try_again(run, attempt)
        doubtful = await _settle(
            run,
            renames,
            outcomes,
            doubtful,
            last=attempt == TRIES - 1,
            make_parents=make_parents,
            own_target=own_target,
            may_be_gone=may_be_gone,
            where_taken=where_taken,
        )
    return [outcome for outcome in outcomes if isinstance(outcome, Renamed)]


async def _settle(
    run: JobRun,
    renames: Sequence[Rename],
    outcomes: list[RenameOutcome],
    doubtful: list[int],
    *,
    last: bool,
    make_parents: bool,
    own_target: bool,
    may_be_gone: bool,
    where_taken: str,
) -> list[int]:
    """Find out what became of the doubtful renames; send again those that surely did not happen and may."""
    sources = await run.store.stat_files([renames[index].source for index in doubtful])
    targets = await run.store.stat_files([renames[index].target for index in doubtful])
    again: list[int] = []
    orphans: set[str] = set()
    for index, source, target in zip(doubtful, sources, targets, strict=True):
        rename, before = renames[index], outcomes[index]
        left_behind = source is not None and source.identity == rename.identity
        if own_target and target is not None and run.store.same_identity(rename.identity, target.identity):
            # Where a rename is two acts, the file itself may still be at its source, too: that one is not done.
            source = source if left_behind else None
        outcome = run.hooks.recover_rename(run.store, rename, before, source, target)
        if isinstance(outcome, Renamed):
            outcomes[index] = outcome
            run.count("commit_file_rename_recovered")
            run.emit("rename-recovered", source=rename.source, target=rename.target)
            run.log.info("rename recovered", target=rename.target)
        elif may_be_gone and source is None and target is None:
            run.log.info("somebody has deleted a file that was to be renamed", source=rename.source)
        elif isinstance(outcome, NotRenamed) and _may_retry(outcome) and not last:
            again.append(index)
            if outcome.reason is Refusal.PARENT_MISSING:
                orphans.add(parent_of(rename.target))
        else:
            raise _failure(run, rename, outcome, source, target, where_taken)
    if not again:
        return []
    if make_parents and orphans - {""}:
        await run.store.make_directories(sorted(orphans - {""}))
    repeated = await run.store.rename_files([renames[index] for index in again])
    run.count("op_rename_repeated", len(again))
    for index, outcome in zip(again, repeated, strict=True):
        outcomes[index] = outcome
    return [index for index in again if not isinstance(outcomes[index], Renamed)]


def _may_retry(outcome: NotRenamed) -> bool:
    return outcome.reason in (Refusal.FAILED, Refusal.PARENT_MISSING)


def _failure(
    run: JobRun,
    rename: Rename,
    outcome: RenameOutcome,
    source: FileStatus | None,
    target: FileStatus | None,
    where_taken: str,
) -> CommitFailed | OutcomeUnknown:
    where = "\n".join(
        [
            f"source  {run.url(rename.source)}  {_seen(source)}",
            f"target  {run.url(rename.target)}  {_seen(target)}, expected {_identity(rename.length, rename.identity)}",
        ]
    )
    name = rename.target.rpartition("/")[2]
    job = run.layout.job_id
    if isinstance(outcome, Unknown):
        return OutcomeUnknown(
            f"cannot tell whether {name} was renamed (job {job}): {outcome.detail}",
            where=where,
            next_step=f"nothing was cleaned up; {command('recover', run.store.url, job)}; where that ends here again, "
            "with --undo it restores the destination",
        )
    detail = f" ({outcome.detail})" if isinstance(outcome, NotRenamed) and outcome.detail else ""
    reason = outcome.reason.value if isinstance(outcome, NotRenamed) else str(outcome)
    steps = {
        Refusal.TARGET_EXISTS: where_taken,
        Refusal.SOURCE_MISSING: "the task attempt's directory was changed or deleted; run the job again",
        Refusal.SOURCE_CHANGED: "the staged file was changed after its task committed; run the job again",
    }
    if target is not None and target.is_directory:
        steps[Refusal.TARGET_EXISTS] = (
            "a directory has the name of this file: move it away, or give the file another name"
        )
    step = steps.get(outcome.reason, "") if isinstance(outcome, NotRenamed) else ""
    return CommitFailed(f"{name} was not renamed (job {job}): {reason}{detail}", where=where, next_step=step)


def _seen(status: FileStatus | None) -> str:
    if status is None:
        return "not found"
    return "found a directory" if status.is_directory else f"found {_identity(status.length, status.identity)}"


def _identity(length: int, identity: str) -> str:
    return f"{length} bytes, identity {identity or 'unknown'}"
