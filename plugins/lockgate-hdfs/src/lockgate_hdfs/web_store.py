"""The store behind `webhdfs://`: the REST API of the NameNode (WebHDFS), asked directly.

fsspec's `webhdfs` renames without options, which moves a file into an existing directory, and ignores the answer; so
the requests are our own. Identity is file id, length and modification time, which a rename keeps.

A large file is sent in parts, each a file of its own that can be sent again, and joined by one CONCAT.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from lockgate.model.capabilities import Capability
from lockgate.model.errors import AnswerLost, FileMissing, StoreError, StoreUnavailable
from lockgate.model.files import FileStatus, NotRenamed, Refusal, Rename, Renamed, RenameOutcome, Unknown
from lockgate.model.options import JobOptions
from lockgate.model.urls import StoreUrl
from lockgate.stores.aside_upload import PartWriter
from lockgate.stores.call_threads import CallFailed
from lockgate.stores.http.client import StoreClient
from lockgate.stores.http.exchange import Answer, Call, Repeat
from lockgate.stores.real_directories import RealDirectoryStore

from lockgate_hdfs.identity import identity_of, is_same
from lockgate_hdfs.native_errors import remote_error
from lockgate_hdfs.native_store import CAPABILITIES
from lockgate_hdfs.settings import HdfsSettings
from lockgate_hdfs.web_endpoints import PREFIX, Endpoints

PARTS_IN_FLIGHT = 2
NOT_NOW_SECONDS = 0.5
_ASCII = "".join(chr(code) for code in range(33, 127))


class WebHdfsStore(RealDirectoryStore):
    """A directory of an HDFS as a store, over HTTP."""

    name: ClassVar[str] = "webhdfs"
    parts_in_flight = PARTS_IN_FLIGHT

    def __init__(self, url: StoreUrl, authority: str, settings: HdfsSettings, options: JobOptions) -> None:
        super().__init__(url, settings.threads)
        self.name_rules = settings.name_rules
        self.part_bytes = settings.part_bytes
        self._endpoints = Endpoints(authority, settings)
        self._patience_s = options.patience_seconds
        # With a second NameNode to turn to, no long wait for the first one.
        own = options.replace(patience_seconds=min(1.0, self._patience_s)) if self._endpoints.has_choice else options
        self.client = StoreClient(self._endpoints.account, self._endpoints, own)
        self._settings = settings

    def same_identity(self, one: str, other: str) -> bool:
        """Also of a file that is named by the other scheme."""
        return is_same(one, other)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Those of HDFS."""
        return CAPABILITIES

    def counters(self) -> Mapping[str, int]:
        """Of all its requests to the NameNode and the DataNodes."""
        return self.client.counters()

    # Requests

    async def ask(
        self,
        kind: str,
        path: str,
        method: str,
        operation: str,
        repeat: Repeat = Repeat.FREELY,
        parameters: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask the active NameNode; while it is in safe mode, or on standby, again and elsewhere.

        Raises:
            StoreError: it refused.
            AnswerLost, StoreUnavailable: as `StoreClient.ask`.
        """
        where = self.url.child(path)
        query = urlencode({"op": operation, **(parameters or {})}, quote_via=quote, safe="")
        began = asyncio.get_running_loop().time()
        while True:
            endpoint = self._endpoints.active
            address = f"{endpoint}{PREFIX}{quote(where.path, safe='/')}?{query}"
            call = Call(kind, method, address, str(where), repeat=repeat)
            late = asyncio.get_running_loop().time() - began > self._patience_s
            try:
                answer = await self.client.ask(call)
                failure = failure_of(answer, kind, str(where))
            except AnswerLost:
                raise
            except StoreUnavailable as error:
                if late or not self._endpoints.has_choice:
                    raise
                failure = CallFailed(error.what, may_have_acted=False)
            if failure is None:
                return answer
            if not isinstance(failure, CallFailed):
                if answer.doubtful and repeat is Repeat.WITH_CARE:
                    raise AnswerLost(f"{failure}, after a try that may have succeeded", where=str(where))
                raise failure
            if late:
                raise StoreUnavailable(str(failure), where=str(where), next_step="is the NameNode in safe mode?")
            self._endpoints.give_up(endpoint)
            await asyncio.sleep(NOT_NOW_SECONDS)

    async def _send(self, kind: str, path: str, method: str, operation: str, body: bytes | None, **how: str) -> Answer:
        """Ask the NameNode which DataNode to ask, and ask that one; all again if it does not answer."""
        where = str(self.url.child(path))
        asked = await self.ask(kind, path, method, operation, parameters={**how, "noredirect": "true"})
        location = _json(asked).get("Location")
        if not location:
            return asked
        # The NameNode leaves characters beyond ASCII in it as they are, though it is a URI.
        address = quote(location, safe=_ASCII)
        answer = await self.client.ask(Call(f"{kind}-data", method, address, where, body=body))
        failure = failure_of(answer, kind, where)
        if failure is not None:
            raise StoreError(str(failure), where=where) if isinstance(failure, CallFailed) else failure
        return answer

    # The calls

    async def stat(self, path: str) -> FileStatus | None:
        """GETFILESTATUS."""
        try:
            answer = await self.ask("stat", path, "GET", "GETFILESTATUS")
        except FileMissing:
            return None
        return status_of(path, _json(answer)["FileStatus"])

    async def entries(self, path: str) -> AsyncIterator[Sequence[FileStatus]]:
        """LISTSTATUS_BATCH, page by page: each begins after the last name of the one before, so that nothing shifts."""
        prefix = f"{path}/" if path else ""
        after: dict[str, str] = {}
        while True:
            try:
                answer = await self.ask("list", path, "GET", "LISTSTATUS_BATCH", parameters=after)
            except FileMissing:
                return
            listing = _json(answer)["DirectoryListing"]
            found = listing["partialListing"]["FileStatuses"]["FileStatus"]
            if len(found) == 1 and not found[0]["pathSuffix"]:
                return  # a file lists itself
            yield [status_of(prefix + each["pathSuffix"], each) for each in found]
            if not listing["remainingEntries"] or not found:
                return
            last = found[-1]["pathSuffix"]
            if last in after.values():
                raise StoreError("the server lists the same page again", where=str(self.url.child(path)))
            # In lower case: Hadoop 3.5.0 documents `startAfter`, and does not know it.
            after = {"startafter": last}

    async def read(self, path: str, length: int) -> bytes | None:
        """OPEN, from a DataNode."""
        try:
            answer = await self._send("read", path, "GET", "OPEN", None, length=str(length))
        except FileMissing:
            return None
        return answer.body[:length]

    async def put(self, path: str, content: bytes) -> FileStatus:
        """CREATE, to a DataNode, and a look at it."""
        await self._send("write", path, "PUT", "CREATE", content, **self._new_file())
        return self.whole(path, await self.stat(path), len(content))

    def whole(self, path: str, written: FileStatus | None, length: int) -> FileStatus:
        """What was written, if it is there with its length.

        Raises:
            FileMissing: its directory was deleted meanwhile.
            StoreError: it is shorter or longer.
        """
        where = str(self.url.child(path))
        if written is None:
            raise FileMissing("it was deleted while it was written", where=where)
        if written.length != length:
            raise StoreError(f"{written.length} of {length} bytes were written", where=where)
        return written

    def _new_file(self) -> dict[str, str]:
        mode = f"{self._settings.file_mode:o}"
        return {"overwrite": "true", "createparent": "false", "permission": mode}

    async def open_parts(self, path: str) -> PartWriter:
        """Nothing is sent before the first part."""
        return _Parts(self, path)

    async def rename(self, rename: Rename) -> RenameOutcome:
        """RENAME with `renameoptions`, which the NameNode then answers without a body."""
        parameters = {
            "destination": self.url.child(rename.target).path,
            "renameoptions": "OVERWRITE" if rename.replace else "NONE",
        }
        try:
            answer = await self.ask("rename", rename.source, "PUT", "RENAME", Repeat.WITH_CARE, parameters)
        except AnswerLost as error:
            return Unknown(error.what)
        except StoreUnavailable as error:
            return NotRenamed(Refusal.FAILED, error.what)
        except FileMissing as error:
            return NotRenamed(Refusal.SOURCE_MISSING, error.what)
        except StoreError as error:
            return NotRenamed(Refusal.TARGET_EXISTS, error.what)
        if answer.body.strip():
            return Unknown("the server ignored renameoptions: use WebHDFS of the NameNode, not HttpFS")
        return Renamed(rename.identity)

    async def delete(self, path: str, *, tree: bool) -> bool:
        """DELETE; a tree in one request."""
        parameters = {"recursive": "true" if tree else "false"}
        try:
            answer = await self.ask("delete", path, "DELETE", "DELETE", parameters=parameters)
        except FileMissing:
            return False
        return bool(_json(answer)["boolean"]) or answer.doubtful

    async def make_directory(self, path: str, *, parents: bool) -> None:
        """MKDIRS makes what is above, always. Where it must not, the directory is made aside and renamed."""
        if parents or not path:
            await self._mkdirs(path)
            return
        aside = self._aside_name()
        await self._mkdirs(aside)
        try:
            await self.rename_into_place(aside, path, FileStatus(aside, is_directory=True), replace=False)
        except BaseException:
            await self.drop(aside)
            raise

    async def _mkdirs(self, path: str) -> None:
        parameters = {"permission": f"{self._settings.directory_mode:o}"}
        await self.ask("make", path, "PUT", "MKDIRS", parameters=parameters)

    async def join(self, path: str, parts: Sequence[str]) -> None:
        """CONCAT: `path` becomes itself with the contents of `parts` behind it, and those are gone, as one act."""
        sources = [self.url.child(part).path for part in parts]
        if any("," in source for source in sources):
            raise StoreError(
                "WebHDFS cannot join the parts of a large file below a directory with a comma in its name",
                where=str(self.url.child(path)),
                next_step="use hdfs://, or a store.part_bytes that is larger than the file",
            )
        await self.ask("join", path, "POST", "CONCAT", Repeat.WITH_CARE, {"sources": ",".join(sources)})

    async def close(self) -> None:
        """Let go of the running loop's connections."""
        await self.client.close()


class _Parts(PartWriter):
    """The parts of a large file, side by side, until they are joined to the first."""

    def __init__(self, store: WebHdfsStore, path: str) -> None:
        self._store = store
        self._path = path
        self._lengths: dict[int, int] = {}

    def _name(self, index: int) -> str:
        return f"{self._path}-{index}" if index else self._path

    async def write(self, index: int, content: bytes) -> None:
        """A file of its own, sent again as often as need be."""
        assert index not in self._lengths, "a part is written once"
        self._lengths[index] = len(content)
        await self._store.put(self._name(index), content)

    async def close(self) -> FileStatus:
        """Join them, and look at the whole."""
        total = sum(self._lengths.values())
        others = [self._name(index) for index in sorted(self._lengths) if index]
        try:
            if others:
                await self._store.join(self._path, others)
        except AnswerLost:
            pass  # the length tells
        return self._store.whole(self._path, await self._store.stat(self._path), total)

    async def give_up(self) -> None:
        """Delete the parts; the first is the caller's."""
        await self._store.delete_files([self._name(index) for index in self._lengths if index])


def status_of(path: str, found: Mapping[str, Any]) -> FileStatus:
    """From a FileStatus of WebHDFS; its times are in milliseconds."""
    modified_ms = int(found["modificationTime"])
    if found["type"] == "DIRECTORY":
        return FileStatus(path, is_directory=True, modified=modified_ms / 1000)
    length = int(found["length"])
    identity = identity_of(length, modified_ms, int(found.get("fileId", 0)))
    return FileStatus(path, length, identity, modified=modified_ms / 1000)


def failure_of(answer: Answer, kind: str, where: str) -> Exception | None:
    """The error that an answer stands for, None where it is a success."""
    if answer.status in (200, 201):
        return None
    remote = _json(answer).get("RemoteException", {})
    java_class = str(remote.get("exception", "")).rpartition(".")[2]
    message = str(remote.get("message", "")) or f"status {answer.status}"
    # The NameNode may wrap what it has to say in another exception.
    inner = re.match(r"(?:[\w.]+\.)(\w+Exception): (.*)", message, re.DOTALL)
    if inner is not None and java_class in ("IOException", "RemoteException", "RuntimeException"):
        java_class, message = inner.group(1), inner.group(2)
    if answer.status == 401:
        java_class = java_class or "AccessControlException"
    if answer.status == 404 and not java_class:
        return StoreError(f"cannot {kind}: there is no WebHDFS here", where=where)
    return remote_error(java_class, message, kind, where)


def _json(answer: Answer) -> dict[str, Any]:
    try:
        found = json.loads(answer.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
