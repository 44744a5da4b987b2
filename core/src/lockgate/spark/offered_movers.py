"""The other end of `asked_movers`: a driver program of Spark answers those who ask for its executors.

It listens on a Unix socket in a directory that only its user may enter, for as long as it runs. Who asks is a Python
process that this driver's JVM has started, on this host; and what it sends is a pickled job, as Spark itself sends
them. Each question has a thread of its own, so the program may be in the middle of the very write.
"""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import shutil
import tempfile
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lockgate.api.job import Job
from lockgate.engine.run.logs import get_log
from lockgate.model.errors import LockgateError, OptionError, UsageError
from lockgate.model.options import JobOptions
from lockgate.model.shares import Moved, Share
from lockgate.spark.distributed_commit import DISTRIBUTED_ABOVE, IDLE_SECONDS, SparkGaveUp, SparkMovers
from lockgate.spark.given_session import check_session
from lockgate.spark.requirements import require_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = get_log()

ABOVE_SETTING = "spark.lockgate.movers_above"
SOCKET_SETTING = "spark.lockgate.movers_socket"

SOCKET_DIRECTORY_MAX = 80
"""So many bytes a directory's path may have: of a socket's, unix(7) allows 107. A container of YARN has longer ones."""


def distribute(
    spark: SparkSession, above: int = DISTRIBUTED_ABOVE, *, tasks: int | None = None, idle_seconds: float = IDLE_SECONDS
) -> None:
    """From now on a job of this session with more than `above` files has them renamed by Spark tasks, be it written by
    `format("lockgate")` or by Spark's own writers: so many `tasks`, or as many as the executors run at once.

    For the files of other jobs, and wherever that is not possible, it is as before: the process that commits renames
    them. It does so where the session has no executors, or one that runs one task; where no task of it has begun, or is
    at work any more, for `idle_seconds`; where Spark gives its tasks up, or they lack a package. `above=0` ends it.
    An option `movers_above` of a write says it for that write.

    Executors need a Python with Lockgate and the store's plugin, which native writers do without otherwise
    (docs/shipping.md).

    Raises:
        UsageError: no session is given, or one of Spark Connect, whose client runs no tasks for a job commit.
        OptionError: `above` is no number of files, `tasks` none of tasks, or `idle_seconds` none of seconds.
    """
    require_pyspark("lockgate.spark.distribute is there")
    check_session(spark, "distribute")
    if not hasattr(spark, "_jsparkSession"):
        raise UsageError(
            "a session of Spark Connect has no executors that its client could have files renamed by",
            next_step="leave it out: the server's process renames the files of a job commit by itself",
        )
    # Here, since else the first write of the session would say it, by the name of a setting that nobody has set.
    above = JobOptions.resolve({"movers_above": above}).movers_above
    if tasks is not None and (isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 1):
        raise OptionError(
            f"tasks cannot be {tasks!r}",
            where="given as an argument",
            next_step="tasks takes a whole number from 1; left out, there are as many as the executors run at once",
        )
    # With one that is no number a commit would wait for ever for executors that are busy.
    is_number = isinstance(idle_seconds, int | float) and not isinstance(idle_seconds, bool)
    if not is_number or not 0 <= idle_seconds < math.inf:
        raise OptionError(
            f"idle_seconds cannot be {idle_seconds!r}",
            where="given as an argument",
            next_step="idle_seconds takes a number of seconds from 0",
        )
    if not above:
        spark.conf.unset(ABOVE_SETTING)
        spark.conf.unset(SOCKET_SETTING)
        return
    spark.conf.set(ABOVE_SETTING, str(above))
    offer = _OFFERS.get(spark.sparkContext)
    if offer is None:
        offer = _OFFERS[spark.sparkContext] = Offer(spark.sparkContext)
    offer.tasks, offer.idle_seconds = tasks, idle_seconds
    spark.conf.set(SOCKET_SETTING, offer.socket)


def _directory() -> Path:
    """A new one that nobody else may enter: its mode is 0700."""
    usual = tempfile.gettempdir()
    short = len(os.fsencode(usual)) <= SOCKET_DIRECTORY_MAX
    return Path(tempfile.mkdtemp(prefix="lockgate-", dir=usual if short else "/tmp"))  # noqa: S108


class Offer:
    """Answers, by the executors of one context, on one socket. `tasks` and `idle_seconds` are those of the last call of
    `distribute`."""

    tasks: int | None = None
    idle_seconds: float = IDLE_SECONDS

    def __init__(self, context: Any) -> None:
        self._context = context
        self._directory = _directory()
        self.socket = str(self._directory / "movers")
        self._listener = listener = Listener(self.socket, family="AF_UNIX")
        atexit.register(self._end)
        threading.Thread(target=self._accept, args=(listener,), name="lockgate-movers", daemon=True).start()

    def _end(self) -> None:
        self._listener.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _accept(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:  # the program ends
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection[Any, Any]) -> None:
        with connection:
            try:
                while True:
                    asked = connection.recv()
                    if asked == "how many":
                        connection.send(self._count())
                        continue
                    if asked == "end":  # its work has been ended by now
                        return
                    job, shares = asked
                    answer = asyncio.run(self._moved(connection, job, shares))
                    connection.send(answer)
            except (EOFError, OSError):  # who asked has what it wanted, or has ended
                return

    def _count(self) -> int:
        """How many movers there are; none where this program alone would be one."""
        try:
            # The driver is one of them (SparkContext.getExecutorMemoryStatus).
            executors = self._context._jsc.sc().getExecutorMemoryStatus().size() - 1
            if executors < 1:
                return 0
            return self.tasks or int(self._context.defaultParallelism)
        except Exception as error:  # a context that was stopped
            log.info("it cannot be told how many executors there are", error=str(error))
            return 0

    async def _moved(
        self, connection: Connection[Any, Any], job: Job, shares: Sequence[Share]
    ) -> tuple[list[Moved] | LockgateError | None, str]:
        """What becomes of the shares; None, and why, where it is not about them. Who asks may say that it is to end, or
        end itself: then Spark's tasks are ended."""
        movers = SparkMovers(self._context, job, 0, len(shares), self.idle_seconds)
        work = asyncio.ensure_future(movers.moved(shares))
        said = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(connection.fileno(), said.set)
        ending = asyncio.ensure_future(said.wait())
        try:
            await asyncio.wait([work, ending], return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
            found = await work
        except asyncio.CancelledError:
            return None, "it was told to end"
        except SparkGaveUp as error:
            return None, f"Spark gave its tasks up: {error}"
        except UsageError as error:  # a plugin, an option or a package that executors have not
            return None, f"executors cannot: {error}"
        except LockgateError as error:
            return error, ""
        finally:
            loop.remove_reader(connection.fileno())
            ending.cancel()
        return found, "" if found is not None else f"no task was at work for {self.idle_seconds:.0f} s"


_OFFERS: WeakKeyDictionary[Any, Offer] = WeakKeyDictionary()
"""One for each context."""
