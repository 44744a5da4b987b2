"""List Blobs and List Containers, in the XML of the Blob service.

Without a delimiter directories are listed too, as empty blobs marked `hdi_isfolder`; with the delimiter `/`, the only
one a hierarchical account knows, a directory is a `BlobPrefix`.

Source: the REST pages "List Blobs" and "List Containers".
"""

from __future__ import annotations

from itertools import islice
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from aiohttp import web

from lockgate_lab.azure.account import AzureAccount
from lockgate_lab.azure.answers import XML_START, answer, blob_metadata, http_date
from lockgate_lab.azure.calls import AzureCall
from lockgate_lab.azure.namespace import Directory, File, Namespace, Node
from lockgate_lab.azure.paging import page_token, token_place
from lockgate_lab.azure.storage_errors import StorageError

LIST_PAGE_MAX = 5000


def xml_answer(call: AzureCall, text: str) -> web.Response:
    """Return a 200 with an XML body."""
    return answer(call, 200, None, XML_START + text.encode(), "application/xml")


def list_containers(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """List Containers, in one page."""
    prefix = call.query.get("prefix", "")
    text = "<Containers>"
    for name, namespace in sorted(account.containers.items()):
        if name.startswith(prefix):
            text += (
                f"<Container><Name>{escape(name)}</Name><Properties>"
                f"<Last-Modified>{http_date(namespace.root.modified)}</Last-Modified><Etag>{namespace.root.etag}</Etag>"
                "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"
                "</Properties></Container>"
            )
    endpoint = quoteattr(f"http://{call.headers.get('Host', '')}/{account.name}")
    return xml_answer(
        call,
        f"<EnumerationResults ServiceEndpoint={endpoint}>{_element('Prefix', prefix)}"
        f"{text}</Containers><NextMarker/></EnumerationResults>",
    )


def list_blobs(account: AzureAccount, call: AzureCall, body: bytes) -> web.Response:
    """List Blobs, by prefix, a page at a time."""
    namespace = account.container(call)
    query = call.query
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    if delimiter not in ("", "/"):
        raise StorageError("InvalidQueryParameterValue")
    page_max = call.number("maxresults", LIST_PAGE_MAX, min(LIST_PAGE_MAX, account.settings.list_page_max))
    if page_max == 0:
        raise StorageError("OutOfRangeQueryParameterValue")
    include = frozenset(query.get("include", "").split(","))
    found = _found(namespace, prefix, recursive=not delimiter, marker=query.get("marker", ""), count=page_max + 1)
    marker = ""
    if len(found) > page_max:
        del found[page_max:]
        marker = page_token(tuple(found[-1][0].split("/")))
    entries = []
    for path, node in found:
        if delimiter and isinstance(node, Directory):
            entries.append(f"<BlobPrefix>{_name(path + '/')}</BlobPrefix>")
        else:
            entries.append(_blob(path, node, "metadata" in include))
    if "uncommittedblobs" in include and not marker:
        entries += _uncommitted(namespace, prefix)
    endpoint = quoteattr(f"http://{call.headers.get('Host', '')}/{account.name}")
    return xml_answer(
        call,
        f"<EnumerationResults ServiceEndpoint={endpoint} ContainerName={quoteattr(call.container)}>"
        f"{_element('Prefix', prefix)}{_element('Marker', query.get('marker', ''))}"
        f"<MaxResults>{page_max}</MaxResults>{_element('Delimiter', delimiter)}"
        f"<Blobs>{''.join(entries)}</Blobs>{_element('NextMarker', marker)}</EnumerationResults>",
    )


def _found(namespace: Namespace, prefix: str, *, recursive: bool, marker: str, count: int) -> list[tuple[str, Node]]:
    *above, starts = prefix.split("/")
    top = namespace.find(tuple(above))
    if not isinstance(top, Directory):
        return []
    leading = "".join(f"{part}/" for part in above)
    after = token_place(marker)[len(above) :]
    walk = namespace.walk(top, recursive=recursive, after=after, starts=starts)
    return [(leading + path, node) for path, node in islice(walk, count)]


def _blob(path: str, node: Node, with_metadata: bool) -> str:
    properties = {
        "Creation-Time": http_date(node.created),
        "Last-Modified": http_date(node.modified),
        "Etag": node.etag,
        "ResourceType": node.resource_type,
        "Content-Length": str(len(node.content)) if isinstance(node, File) else "0",
        "Content-Type": "application/octet-stream",
        "BlobType": "AppendBlob" if isinstance(node, File) and node.is_append_blob else "BlockBlob",
        "LeaseStatus": "unlocked",
        "LeaseState": "available",
        "ServerEncrypted": "true",
        "Owner": node.owner,
        "Group": node.group,
        "Permissions": node.access.permissions,
    }
    if isinstance(node, File):
        properties.update(node.properties)
    text = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in properties.items())
    metadata = ""
    if with_metadata:
        pairs = blob_metadata(node).items()
        metadata = f"<Metadata>{''.join(f'<{name}>{escape(value)}</{name}>' for name, value in pairs)}</Metadata>"
    return f"<Blob>{_name(path)}<Properties>{text}</Properties>{metadata}</Blob>"


def _uncommitted(namespace: Namespace, prefix: str) -> list[str]:
    found = []
    for parts in sorted(namespace.uncommitted):
        path = "/".join(parts)
        if path.startswith(prefix) and namespace.find(parts) is None:
            properties = "<Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>"
            found.append(f"<Blob>{_name(path)}<Properties>{properties}</Properties></Blob>")
    return found


def _name(path: str) -> str:
    # XML 1.0 cannot hold most control characters: such a name travels percent-encoded, and says so.
    if any(character < " " or character in "\ufffe\uffff" for character in path):
        return f'<Name Encoded="true">{quote(path)}</Name>'
    return f"<Name>{escape(path)}</Name>"


def _element(name: str, value: str) -> str:
    return f"<{name}>{escape(value)}</{name}>" if value else f"<{name}/>"
