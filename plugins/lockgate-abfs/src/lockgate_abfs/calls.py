"""The requests that the store makes, as values: Data Lake and Blob service, one function each.

Source: the REST references "Data Lake Storage Gen2: Path" and "Blob service"; for what a client may rely on beyond
them, Hadoop's `AbfsDfsClient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

from lockgate.model.urls import StoreUrl
from lockgate.stores.http.exchange import Call, Repeat

from lockgate_abfs.location import Location

LIST_PAGE = 5000
_JSON = {"accept": "application/json"}
_ABSENT = {"if-none-match": "*"}


@dataclass(frozen=True, slots=True)
class Calls:
    """Builds requests for paths below one root."""

    root: StoreUrl
    location: Location

    def _where(self, path: str) -> str:
        return str(self.root.child(path))

    def _dfs(
        self,
        kind: str,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] = _JSON,
        repeat: Repeat = Repeat.FREELY,
    ) -> Call:
        return Call(kind, method, self.location.dfs_url(path, query), self._where(path), headers, repeat=repeat)

    def rename(
        self, source: str, target: str, *, etag: str, replace: bool, transaction_id: str, source_query: str
    ) -> Call:
        """Rename a file or a directory: the conditions make a second try harmless.

        In the mode `legacy`: in the service's own default, `posix`, it moves the source into a directory that has the
        target's name, whatever the conditions say.
        """
        signed = f"?{source_query}" if source_query else ""
        headers = {
            **_JSON,
            "x-ms-rename-source": self.location.rename_source(source) + signed,
            "x-ms-client-transaction-id": transaction_id,
        }
        if not replace:
            headers |= _ABSENT
        if etag:
            headers["x-ms-source-if-match"] = f'"{etag}"'
        return self._dfs("rename", "PUT", target, "mode=legacy", headers, Repeat.WITH_CARE)

    def status(self, path: str) -> Call:
        """Ask for the properties that need no right to read the file."""
        return self._dfs("status", "HEAD", path, "action=getStatus")

    def make_directory(self, path: str) -> Call:
        """Make a directory and what is missing above it."""
        return self._dfs("make-directory", "PUT", path, "resource=directory", {**_JSON, **_ABSENT})

    def delete(self, path: str, *, recursive: bool, paginated: bool = False, continuation: str = "") -> Call:
        """Delete a file, an empty directory, or a tree (a page of it)."""
        query = f"recursive={str(recursive).lower()}"
        if paginated:
            query += "&paginated=true"
        if continuation:
            query += f"&continuation={quote(continuation, safe='')}"
        return self._dfs("delete", "DELETE", path, query)

    def list_paths(self, path: str, *, recursive: bool, continuation: str = "") -> Call:
        """List a page of a directory or a tree."""
        asked = {"resource": "filesystem", "recursive": str(recursive).lower(), "maxResults": str(LIST_PAGE)}
        key = self.location.key(path)
        if key:
            asked["directory"] = key
        if continuation:
            asked["continuation"] = continuation
        url = f"{self.location.dfs_endpoint}/{self.location.container}?{urlencode(asked, quote_via=quote)}"
        return Call("list", "GET", url, self._where(path), _JSON)

    def filesystem(self) -> Call:
        """Ask for the container's properties, among them whether its namespace is hierarchical."""
        url = f"{self.location.dfs_endpoint}/{self.location.container}?resource=filesystem"
        return Call("filesystem", "HEAD", url, str(self.root), _JSON)

    def read(self, path: str, bytes_max: int) -> Call:
        """Read at most so many bytes from the start."""
        headers = {"x-ms-range": f"bytes=0-{bytes_max - 1}"}
        return Call("read", "GET", self.location.blob_url(path), self._where(path), headers)

    def put_blob(self, path: str, content: bytes, *, absent: bool) -> Call:
        """Write a file with all its content, as one act; `absent`: only if nothing is there."""
        headers = {"x-ms-blob-type": "BlockBlob", "content-type": "application/octet-stream"}
        if absent:
            headers |= _ABSENT
        repeat = Repeat.WITH_CARE if absent else Repeat.FREELY
        return Call("write", "PUT", self.location.blob_url(path), self._where(path), headers, content, repeat)

    def put_block(self, path: str, block: str, content: bytes) -> Call:
        """Send a part that nobody sees yet."""
        url = self.location.blob_url(path, f"comp=block&blockid={quote(block, safe='')}")
        headers = {"content-type": "application/octet-stream"}
        return Call("write-block", "PUT", url, self._where(path), headers, content)

    def put_block_list(self, path: str, blocks: list[str]) -> Call:
        """Make a file of the parts sent, as one act, if nothing is there."""
        text = "".join(f"<Uncommitted>{escape(block)}</Uncommitted>" for block in blocks)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{text}</BlockList>'.encode()
        headers = {
            "content-type": "application/xml",
            "x-ms-blob-content-type": "application/octet-stream",
            **_ABSENT,
        }
        url = self.location.blob_url(path, "comp=blocklist")
        return Call("write-list", "PUT", url, self._where(path), headers, body, Repeat.WITH_CARE)

    def block_list(self, path: str) -> Call:
        """Ask which parts a file was made of."""
        url = self.location.blob_url(path, "comp=blocklist&blocklisttype=committed")
        return Call("status", "GET", url, self._where(path))
