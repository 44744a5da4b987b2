"""The metadata by which a blob says whose it is.

`MARK` is on a file that an upload has become. `EMPTYING` is on one that is about to: a file without content is
completed in two steps, and this is between them. `GIVEN_UP` is on the empty blob that ends what waits for a name, for
as long as it takes to delete it. The two that are no files say `hdi_isfolder`, where names are no directories: by that
Hadoop's connectors, adlfs and this store take them for directories, and read no content from them.

Source: the REST page "Setting and retrieving properties and metadata for Blob resources"; for `hdi_isfolder`, Hadoop's
`AzureNativeFileSystemStore` and `AbfsBlobClient`, and `adlfs.spec`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from lockgate.stores.http.exchange import Answer

MARK = "lockgate_mark"
EMPTYING = "lockgate_emptying"
GIVEN_UP = "lockgate_given_up"
FOLDER = "hdi_isfolder"

_HEADER = "x-ms-meta-"


def metadata_of(answer: Answer) -> dict[str, str]:
    """The metadata in the headers of an answer, by names in lower case, as the Blob or the Data Lake service has it."""
    found = {name[len(_HEADER) :]: value for name, value in answer.headers.items() if name.startswith(_HEADER)}
    for pair in answer.headers.get("x-ms-properties", "").split(","):
        name, _, value = pair.strip().partition("=")
        if name:
            found[name.lower()] = base64.b64decode(value).decode("latin-1")
    return found


def is_folder(metadata: Mapping[str, str]) -> bool:
    """Whether a blob stands for a directory, or for nothing."""
    return metadata.get(FOLDER, "").lower() == "true"


def is_passing(metadata: Mapping[str, str]) -> bool:
    """Whether it is of this store's, and about to go or to become a file."""
    return GIVEN_UP in metadata or EMPTYING in metadata
