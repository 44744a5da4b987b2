"""What the store takes from `options.store` and the environment, under the names that gcsfs, or Hadoop, gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from lockgate.model.endpoints import check_endpoint
from lockgate.model.errors import OptionError
from lockgate.model.store_options import bytes_of, number_of

from lockgate_gcs.batch import CALLS_MAX
from lockgate_gcs.hadoop_names import HADOOP_NAMES, told_by_hadoop

SCHEMES = ("gs", "gcs")
ENDPOINT = "https://storage.googleapis.com"
CHUNK_STEP = 256 << 10
CHUNK_BYTES = 8 << 20


RenameBy = Literal["auto", "move", "copy"]
_RENAME_BY = ("auto", "move", "copy")


@dataclass(frozen=True)
class GcsSettings:
    """Endpoint, credentials (never shown) and a few switches. Frozen, checked where made.

    `token` is `anon`, `google_default`, `cloud`, a path of a JSON key file, or the JSON itself; empty: as the
    environment has it, anonymous against an emulator. `rename`: `auto` or `move`, which are one, or `copy`, which
    is weaker and for services that know no moves. `batch_calls` is how many calls travel in one request at most; 1
    sends each by itself, and so is done where the service takes no batches. `chunk_bytes` is the length of the parts of
    large uploads.
    """

    endpoint_url: str = ENDPOINT
    token: str = field(default="", repr=False)
    user_project: str = ""
    rename: RenameBy = "auto"
    batch_calls: int = CALLS_MAX
    chunk_bytes: int = CHUNK_BYTES

    @classmethod
    def resolve(cls, options: Mapping[str, str], environment: Mapping[str, str]) -> GcsSettings:
        """Options first, then the connector's names among them, then STORAGE_EMULATOR_HOST.

        Raises:
            OptionError: a value is not of its kind.
        """
        options = told_by_hadoop(options) | dict(options)
        emulator = environment.get("STORAGE_EMULATOR_HOST", "")
        if emulator and "://" not in emulator:
            emulator = f"http://{emulator}"
        endpoint = options.get("endpoint_url", "") or emulator or ENDPOINT
        if "://" not in endpoint:
            endpoint = f"https://{endpoint}"
        check_endpoint("store.endpoint_url", endpoint)
        token = options.get("token", "")
        if not token and endpoint != ENDPOINT and "googleapis.com" not in endpoint:
            token = "anon"  # noqa: S105  # a word of gcsfs
        rename = options.get("rename", "auto")
        if rename not in _RENAME_BY:
            raise OptionError(
                f"store.rename cannot be {rename!r}",
                next_step="store.rename takes auto, move or copy",
            )
        return cls(
            endpoint.rstrip("/"),
            token,
            options.get("user_project", ""),
            cast(RenameBy, rename),
            number_of("batch_calls", options.get("batch_calls", str(CALLS_MAX)), least=1, most=CALLS_MAX),
            bytes_of("chunk_bytes", options.get("chunk_bytes", str(CHUNK_BYTES)), least=CHUNK_STEP, most=1 << 30)
            // CHUNK_STEP
            * CHUNK_STEP,
        )


OPTIONS = (*GcsSettings.__dataclass_fields__, *HADOOP_NAMES)
"""What the store reads of `JobOptions.store`."""
