"""The NameNodes that a `webhdfs` URL stands for, which of them is asked now, and with whose credentials."""

from __future__ import annotations

from urllib.parse import quote

from lockgate.stores.http.exchange import Call

from lockgate_hdfs.hadoop_conf import namenodes_of
from lockgate_hdfs.settings import HdfsSettings

PREFIX = "/webhdfs/v1"


class Endpoints:
    """One NameNode, or those of a name service in turn. Also the `Authorizer` of the store's requests: a delegation
    token where there is one, else the user's name."""

    def __init__(self, authority: str, settings: HdfsSettings) -> None:
        scheme = "https" if settings.tls else "http"
        kind = "https" if settings.tls else "http"
        found = [
            settings.hadoop.get(f"dfs.namenode.{kind}-address.{authority}.{namenode}", "")
            for namenode in namenodes_of(authority, settings.hadoop)
        ]
        self._addresses = [f"{scheme}://{address}" for address in found if address] or [f"{scheme}://{authority}"]
        self._active = 0
        self._credential = (
            f"delegation={quote(settings.token, safe='')}"
            if settings.token
            else f"user.name={quote(settings.user, safe='')}"
            if settings.user
            else ""
        )

    @property
    def account(self) -> str:
        """What limits are counted by."""
        return self._addresses[0]

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one NameNode."""
        return len(self._addresses) > 1

    @property
    def active(self) -> str:
        """The NameNode to ask, as `http://host:port`."""
        return self._addresses[self._active]

    def give_up(self, endpoint: str) -> None:
        """Turn from this one to the next, unless somebody has done so already."""
        if self.active == endpoint:
            self._active = (self._active + 1) % len(self._addresses)

    async def authorize(self, call: Call) -> tuple[str, dict[str, str]]:
        """Add the credential to a request to a NameNode; a DataNode's address comes with it."""
        asks_namenode = any(call.url.startswith(f"{address}{PREFIX}") for address in self._addresses)
        url = f"{call.url}&{self._credential}" if asks_namenode and self._credential else call.url
        headers = {"Content-Type": "application/octet-stream"} if call.body is not None else {}
        return url, headers
