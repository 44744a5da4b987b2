"""From a URL and the settings to endpoints, container and path.

`abfss://container@account.dfs.core.windows.net/path` names all; `abfss://container/path` leaves the account to the
settings. The Data Lake and the Blob endpoint serve one set of data; an emulator may serve both at one URL.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from lockgate.model.endpoints import check_endpoint, is_host_and_port
from lockgate.model.errors import OptionError, PathError
from lockgate.model.urls import StoreUrl

from lockgate_abfs.connection_string import parse_connection_string
from lockgate_abfs.settings import AbfsSettings

SCHEMES = ("abfs", "abfss", "az")
_SUFFIX = "core.windows.net"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a store's root is. Endpoints are without a slash at their end; `root` is without one on either side."""

    account: str
    container: str
    root: str
    dfs_endpoint: str
    blob_endpoint: str

    def key(self, relative: str) -> str:
        """The path below the container, decoded; empty for the container itself."""
        return f"{self.root}/{relative}" if self.root and relative else self.root or relative

    def dfs_url(self, relative: str, query: str = "") -> str:
        """The percent-encoded URL of a path at the Data Lake endpoint."""
        return f"{self.dfs_endpoint}/{self.container}{_below(self.key(relative))}{'?' + query if query else ''}"

    def blob_url(self, relative: str, query: str = "") -> str:
        """The percent-encoded URL of a path at the Blob endpoint."""
        return f"{self.blob_endpoint}/{self.container}{_below(self.key(relative))}{'?' + query if query else ''}"

    @property
    def place(self) -> StoreUrl:
        """The container's directory, under one name for all schemes, and whether by TLS or not."""
        scheme, _, endpoint = self.blob_endpoint.partition("://")
        host, slash, account = endpoint.lower().partition("/")
        host = host.removesuffix(":443" if scheme == "https" else ":80")
        return StoreUrl("abfs", f"{self.container}@{host}{slash}{account}", f"/{self.root}")

    def rename_source(self, relative: str) -> str:
        """A path as the rename header takes it: encoded like a URL, from the container on."""
        return f"/{self.container}{_below(self.key(relative))}"


def encode(text: str) -> str:
    """Percent-encode all but unreserved characters and slashes, so that no server can read it in two ways.

    Raises:
        PathError: it has characters that are not Unicode text, as of a local file name in another encoding.
    """
    directory, slash, name = text.rpartition("/")
    try:
        # Many files are in one directory, and names need mostly no encoding, which is seen quickly.
        return f"{_encoded(directory)}{slash}{quote(name, safe='-_.~')}"
    except UnicodeEncodeError:
        raise PathError(
            "a name on this store must be Unicode text",
            where=ascii(text),
            next_step="give the file, or the value that it is partitioned by, another name",
        ) from None


@lru_cache(maxsize=1024)
def _encoded(directory: str) -> str:
    return quote(directory, safe="/-_.~")


def _below(key: str) -> str:
    return f"/{encode(key)}" if key else ""


def locate(url: StoreUrl, settings: AbfsSettings) -> Location:
    """Find the endpoints of a URL.

    Raises:
        OptionError: the account is not named, or the URL and the connection string name different ones; or no request
            can be sent to what is named as an endpoint.
        PathError: the URL names no container.
    """
    container, at, host = url.authority.partition("@")
    if not container:
        raise PathError(
            "an Azure URL needs a container",
            where=str(url),
            next_step="abfss://container@account.dfs.core.windows.net/…",
        )
    told = parse_connection_string(settings.connection_string)
    named = told.get("accountname", "") or settings.account_name
    account = host.partition(".")[0] if at else named
    if not account:
        account = _account_of(told.get("blobendpoint", ""))
    if not account:
        raise OptionError(
            "the URL does not name the storage account",
            where=str(url),
            next_step="write abfss://container@account.dfs.core.windows.net/…, or set store.account_name",
        )
    if at and told.get("accountname", account) != account:
        raise OptionError(
            f"the URL is of account {account!r}, the connection string of {told['accountname']!r}",
            where=str(url),
            next_step="give the connection string of the account that the URL names",
        )
    dfs, blob = _endpoints(account, host, told, settings)
    return Location(account, container, url.path.strip("/"), dfs, blob)


def _endpoints(account: str, host: str, told: dict[str, str], settings: AbfsSettings) -> tuple[str, str]:
    if settings.endpoint_url:
        check_endpoint("store.endpoint_url", settings.endpoint_url)
        both = f"{settings.endpoint_url.rstrip('/')}/{account}"
        return both, both
    blob, dfs = told.get("blobendpoint", "").rstrip("/"), told.get("dfsendpoint", "").rstrip("/")
    if blob or dfs:
        blob = blob or dfs.replace(".dfs.", ".blob.", 1)
        for name, given in (("BlobEndpoint", blob), ("DfsEndpoint", dfs or blob)):
            check_endpoint(f"{name} of store.connection_string", given)
        return dfs or blob.replace(".blob.", ".dfs.", 1), blob
    if settings.account_host:
        blob = f"https://{settings.account_host.rstrip('/')}"
        if not is_host_and_port(settings.account_host.rstrip("/")):
            raise OptionError(
                f"store.account_host cannot be {settings.account_host!r}",
                next_step="store.account_host takes the host alone, such as account.blob.core.chinacloudapi.cn",
            )
        return blob.replace(".blob.", ".dfs.", 1), blob
    protocol = told.get("defaultendpointsprotocol", "https")
    names_service = ".dfs." in host or ".blob." in host
    if names_service or ("." in host and not told.get("endpointsuffix")):
        # Whatever is between the account and the service is kept: the zone of an account with a zone of its own
        # (NAME.z01.dfs.storage.azure.net), `privatelink`; a host that names no service serves both.
        whole = f"{protocol}://{host}"
        check_endpoint("the account's endpoint, as the URL names it,", whole)
        return whole.replace(".blob.", ".dfs.", 1), whole.replace(".dfs.", ".blob.", 1)
    suffix = told.get("endpointsuffix", "") or _SUFFIX
    blob = f"{protocol}://{account}.blob.{suffix}"
    check_endpoint("the account's endpoint", blob)
    return f"{protocol}://{account}.dfs.{suffix}", blob


def _account_of(endpoint: str) -> str:
    host, _, path = endpoint.partition("://")[2].partition("/")
    return path.strip("/") if path.strip("/") else host.partition(".")[0]
