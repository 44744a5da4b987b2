"""The requests that the store makes, as values: Data Lake and Blob service, one function each.

Source: the REST references "Data Lake Storage Gen2: Path" and "Blob service"; for what a client may rely on beyond
them, Hadoop's `AbfsDfsClient`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

from lockgate.model.urls import StoreUrl
from lockgate.stores.http.exchange import Call, Repeat

from lockgate_abfs.answers import DATA_LAKE
from lockgate_abfs.location import Location

LIST_PAGE = 5000
_JSON = {"accept": DATA_LAKE}
_ABSENT = {"if-none-match": "*"}
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Calls:
    """Builds requests for paths below one root."""

    root: StoreUrl
    location: Location

    def _where(self, path: str) -> str:
        return self.root.text_below(path)

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

    def properties(self, path: str) -> Call:
        """Ask for all properties, those that its writer gave it among them; that needs the right to read the file."""
        return self._dfs("status", "HEAD", path)

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

    def put_block_list(
        self, path: str, blocks: Sequence[str], *, metadata: Mapping[str, str] = NOTHING, identity: str = ""
    ) -> Call:
        """Make a file of the parts sent, as one act, if nothing is there, or the file of that identity is; what else
        waits for this name is dropped."""
        text = "".join(f"<Uncommitted>{escape(block)}</Uncommitted>" for block in blocks)
        body = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{text}</BlockList>'.encode()
        headers = {
            "content-type": "application/xml",
            "x-ms-blob-content-type": "application/octet-stream",
            **{f"x-ms-meta-{name}": value for name, value in metadata.items()},
            **(_only(identity) if identity else _ABSENT),
        }
        url = self.location.blob_url(path, "comp=blocklist")
        return Call("write-list", "PUT", url, self._where(path), headers, body, Repeat.WITH_CARE)

    def block_list(self, path: str, *, waiting: bool = False) -> Call:
        """Ask which parts a file was made of, or which wait for its name."""
        kind = "uncommitted" if waiting else "committed"
        url = self.location.blob_url(path, f"comp=blocklist&blocklisttype={kind}")
        return Call("status", "GET", url, self._where(path))

    # The Blob service alone

    def account(self) -> Call:
        """Ask for the account's kind."""
        url = f"{self.location.blob_endpoint}/{self.location.container}?restype=account&comp=properties"
        return Call("account", "HEAD", url, str(self.root))

    def blob_status(self, path: str) -> Call:
        """Ask for a blob's properties and metadata."""
        return Call("status", "HEAD", self.location.blob_url(path), self._where(path))

    def list_blobs(self, path: str, *, delimiter: str = "", marker: str = "", waiting: bool = False) -> Call:
        """List a page of the blobs below a directory; `waiting`: with the names for which only blocks wait."""
        key = self.location.key(path)
        asked = {"restype": "container", "comp": "list", "maxresults": str(LIST_PAGE)}
        asked["include"] = "metadata,uncommittedblobs" if waiting else "metadata"
        if key:
            asked["prefix"] = f"{key}/"
        if delimiter:
            asked["delimiter"] = delimiter
        if marker:
            asked["marker"] = marker
        url = f"{self.location.blob_endpoint}/{self.location.container}?{urlencode(asked, quote_via=quote)}"
        return Call("list", "GET", url, self._where(path))

    def delete_blob(self, path: str, *, identity: str = "") -> Call:
        """Delete a blob, or only the one of that identity."""
        headers = _only(identity) if identity else {}
        return Call("delete", "DELETE", self.location.blob_url(path), self._where(path), headers)

    def replace_blob(self, path: str, content: bytes, identity: str) -> Call:
        """Write a file with all its content over the one of that identity, as one act."""
        headers = {"x-ms-blob-type": "BlockBlob", "content-type": "application/octet-stream", **_only(identity)}
        return Call("write", "PUT", self.location.blob_url(path), self._where(path), headers, content, Repeat.WITH_CARE)


def _only(identity: str) -> dict[str, str]:
    return {"if-match": f'"{identity}"'}
