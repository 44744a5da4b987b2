"""What the paper says of each protocol (`zero-rename-committer.tex`), and why our cells differ from it where they do.

Its cells: the table of section "Related Work" (Direct, Stocator, S3A, EMR); the table of the two algorithms in section
"Hadoop's FileOutputCommitter", which its source holds and does not print; and sentences, each named here.
"""

from __future__ import annotations

YES, NO = True, False

_ROWS = (
    "speculation safe",
    "recoverable after the driver died",
    "task abortable",
    "job abortable",
    "uncommitted work unseen",
    "committed work unseen",
    "task commit atomic",
    "job commit atomic",
    "holds through a partition",
)


def _column(cells: str) -> dict[str, bool]:
    return {row: cell == "y" for row, cell in zip(_ROWS, cells, strict=True)}


CELLS: dict[str, dict[str, bool]] = {
    # "Observable" in the paper's rows is the opposite of "unseen" in ours.
    "direct": {
        **_column("nnnynnyyn"),
        # "which is both atomic and repeatable, therefore their job commit operations are both fast and safe".
        "job commit repeatable": YES,
        "job commit in constant requests": YES,
        # "a failed task could not be repeated, as its output was unknown".
        "task failure leaves nothing": NO,
    },
    "stocator": {
        **_column("ynyynnyyn"),
        # "Stocator's task commit operation becomes a no-op, thus trivially repeatable."
        "task commit repeatable": YES,
        "job commit repeatable": YES,
    },
    # The S3A committers: uploads that the job commit completes, as ours.
    "deferred": {
        **_column("ynyyyyyny"),
        # "it is an O(files) operation which may fail partway through".
        "job commit in constant requests": NO,
    },
    "emrfs": {
        **_column("yyyyynnyn"),
        # "The job commit operation simply becomes one of writing the _SUCCESS file".
        "job commit in constant requests": YES,
        # "as is reattempts of any task which failed up to the point of the task commit".
        "task failure leaves nothing": YES,
        # A new attempt "will then commit its work into a destination of unknown state".
        "task commit repeatable": NO,
    },
    "v1": {
        "tasks independent": YES,
        # "everything under this directory is excluded from normal listings": what tasks write in `_temporary`.
        "uncommitted work unseen": YES,
        # "abort a task attempt by deleting its task attempt path. On a genuine filesystem this is an O(1) operation."
        "task abort cheap": YES,
        "speculation safe": YES,
        "recoverable after the driver died": YES,
        "job abortable": YES,
        "committed work unseen": YES,
        "task commit atomic": YES,
        "task commit repeatable": YES,
        "job commit atomic": NO,
        # "isCommitJobRepeatable: false".
        "job commit repeatable": NO,
        # "job commit is an O(tasks), with the time for each task's merge being a function of the number of files".
        "job commit in constant requests": NO,
    },
    "v2": {
        "tasks independent": YES,
        "uncommitted work unseen": YES,
        "speculation safe": YES,
        "recoverable after the driver died": NO,
        # "Delete output directory".
        "job abortable": NO,
        "committed work unseen": NO,
        "task commit atomic": NO,
        "task commit repeatable": NO,
        "job commit atomic": YES,
        "job commit repeatable": YES,
        # "the time to commit a job is barely measurable".
        "job commit in constant requests": YES,
    },
}
"""By the name of our protocol, and the row."""

_RECORD = (
    "the paper asks whether a further attempt at the job can take over what tasks have committed; its committers keep "
    "nothing to go on from. Ours keep a commit record. Which attempts count is written down before anything becomes "
    "visible. So anybody can finish the job from there, or undo it."
)
_FENCE = (
    "the paper's committers keep no record, so a driver that is started again just commits again. Ours keep one. It "
    "says that the first driver holds the job, and the second is refused, since the first may be alive. `lockgate "
    "recover` goes on once that one is dead."
)
_LOOKS = (
    "the paper's commit believes what its tasks have said, and only writes `_SUCCESS`. Ours looks at each file where "
    "it stands, before the commit and in it, and refuses a job of which one is gone or is another."
)

DIFFERENCES: dict[tuple[str, str], str] = {
    ("v2", "recoverable after the driver died"): _RECORD,
    ("v2", "job abortable"): (
        "Hadoop's v2 saves nothing of what its tasks have moved, so that only the whole directory can be deleted. Ours "
        "saves an intent before a task's first file moves, and takes out what it names, each file by its identity."
    ),
    ("v2", "job commit repeatable"): _FENCE,
    ("v2", "job commit in constant requests"): _LOOKS,
    ("deferred", "recoverable after the driver died"): _RECORD,
    ("direct", "recoverable after the driver died"): _RECORD,
    ("direct", "job commit repeatable"): _FENCE,
    ("direct", "job commit in constant requests"): _LOOKS,
    ("stocator", "recoverable after the driver died"): _RECORD,
    ("stocator", "job commit repeatable"): _FENCE,
    ("direct", "task abortable"): (
        "an attempt that lives to abort deletes what it has written, each file by its identity; only one that dies "
        "leaves its files."
    ),
    ("direct", "job abortable"): (
        "the paper's abort deletes the whole output directory, which may hold other jobs' files. Ours takes out what "
        "the job's task attempts have saved; what an attempt has written that had not come to its commit is not known "
        "to be the job's, and stays."
    ),
    ("direct", "task commit atomic"): (
        "the paper's is no operation at all. Ours asks what is found once another attempt has committed in the place "
        "of one that died: the dead one's files are there beside it."
    ),
    ("emrfs", "holds through a partition"): (
        "in the paper's an attempt that was cut off may complete its uploads when its job has committed without it. "
        "Ours writes down its intent first and then looks whether the job is claimed, and the driver looks for intents "
        "once it is."
    ),
    ("emrfs", "job commit in constant requests"): _LOOKS,
}
"""Why a cell of ours is not the paper's, where one is not."""
