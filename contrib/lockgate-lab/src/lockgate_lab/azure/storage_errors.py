"""Azure's error codes, each with its status and the text the service gives.

Source: the REST pages "Azure Blob Storage error codes" and "Azure Data Lake Storage Gen2 error codes", and the error
lists of "Path - Create", "Path - Update", "Path - Delete" and "Path - List".
"""

from __future__ import annotations

_STATUS_AND_TEXT: dict[str, tuple[int, str]] = {
    "InvalidBlobOrBlock": (400, "The specified blob or block content is invalid."),
    "InvalidBlockList": (400, "The specified block list is invalid."),
    "InvalidFlushPosition": (400, "The uploaded data is not contiguous or the position is not the length of the file."),
    "InvalidHeaderValue": (400, "The value for one of the HTTP headers is not in the correct format."),
    "InvalidInput": (400, "One of the request inputs is not valid."),
    "InvalidQueryParameterValue": (400, "Value for one of the query parameters is invalid."),
    "InvalidResourceName": (400, "The specified resource name contains invalid characters."),
    "InvalidUri": (400, "The request URI is invalid."),
    "InvalidXmlDocument": (400, "XML specified is not syntactically valid."),
    "Md5Mismatch": (400, "The MD5 value specified in the request did not match the MD5 value of the content."),
    "MissingRequiredHeader": (400, "A header that is required for this request was not specified."),
    "MissingRequiredQueryParameter": (400, "A query parameter that is required was not specified."),
    "OutOfRangeInput": (400, "One of the request inputs is out of range."),
    "OutOfRangeQueryParameterValue": (
        400,
        "One of the query parameters specified in the request URI is outside the permissible range.",
    ),
    "UnsupportedQueryParameter": (400, "One of the query parameters is not supported."),
    "NoAuthenticationInformation": (401, "Server failed to authenticate the request: no credentials were given."),
    "AuthenticationFailed": (
        403,
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
        "including the signature.",
    ),
    "AuthorizationFailure": (403, "This request is not authorized to perform this operation."),
    "AuthorizationPermissionMismatch": (403, "This request is not authorized by these permissions."),
    "UnauthorizedBlobOverwrite": (403, "This request is not authorized to perform blob overwrites."),
    "CannotVerifyCopySource": (404, "The specified resource does not exist."),
    "BlobNotFound": (404, "The specified blob does not exist."),
    "ContainerNotFound": (404, "The specified container does not exist."),
    "FilesystemNotFound": (404, "The specified filesystem does not exist."),
    "PathNotFound": (404, "The specified path does not exist."),
    "RenameDestinationParentPathNotFound": (404, "The parent directory of the destination path does not exist."),
    "SourcePathNotFound": (404, "The source path for a rename operation does not exist."),
    "BlobAlreadyExists": (409, "The specified blob already exists."),
    "BlobOperationNotSupported": (409, "Blob operation is not supported."),
    "BlockCountExceedsLimit": (409, "The committed block count cannot exceed the maximum limit."),
    "ContainerAlreadyExists": (409, "The specified container already exists."),
    "DirectoryIsNotEmpty": (409, "This operation is not permitted on a non-empty directory."),
    "DirectoryNotEmpty": (409, "The recursive query parameter must be true to delete a non-empty directory."),
    "FilesystemAlreadyExists": (409, "The specified filesystem already exists."),
    "LeaseAlreadyPresent": (409, "There is already a lease present."),
    "LeaseIdMismatchWithLeaseOperation": (
        409,
        "The lease ID specified did not match the lease ID for the resource with the specified lease operation.",
    ),
    "LeaseIsBrokenAndCannotBeRenewed": (
        409,
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
    ),
    "LeaseNotPresentWithLeaseOperation": (409, "There is currently no lease on the resource."),
    "InvalidBlobType": (409, "The blob type is invalid for this operation."),
    "InvalidFlushOperation": (409, "The resource was created or modified by the Blob Service API."),
    "InvalidRenameSourcePath": (409, "The source directory cannot be the destination, nor contain it."),
    "InvalidSourceOrDestinationResourceType": (409, "The source and destination must both be files or directories."),
    "PathAlreadyExists": (409, "The specified path already exists."),
    "PathConflict": (409, "The path, or an element of it, exists and its resource type is invalid for this operation."),
    "ResourceTypeMismatch": (409, "The specified resource type does not match the existing resource type."),
    "AppendPositionConditionNotMet": (412, "The append position condition specified was not met."),
    "LeaseIdMismatchWithBlobOperation": (412, "The lease ID specified did not match the lease ID for the resource."),
    "LeaseIdMissing": (
        412,
        "There is currently a lease on the resource and no lease ID was specified in the request.",
    ),
    "LeaseLost": (412, "A lease ID was specified, but the lease for the resource has expired."),
    "LeaseNotPresentWithBlobOperation": (412, "There is currently no lease on the resource."),
    "ConditionNotMet": (412, "The condition specified using HTTP conditional header(s) is not met."),
    "SourceConditionNotMet": (412, "The source condition specified using HTTP conditional header(s) is not met."),
    "InvalidRange": (416, "The range specified is invalid for the current size of the resource."),
    "InternalError": (500, "Server encountered an internal error. Please try again after some time."),
    "OperationTimedOut": (500, "The operation could not be completed within the permitted time."),
    "NotImplemented": (501, "This emulator does not implement the requested operation."),
    "ServerBusy": (503, "Operations per second is over the account limit."),
    "TooManyRequests": (429, "Operations per second is over the account limit."),
}

_USUAL_CODE = {403: "AuthorizationFailure", 429: "TooManyRequests", 500: "InternalError", 503: "ServerBusy"}


class StorageError(Exception):
    """A refusal, by its code; `headers` go along with the answer."""

    def __init__(self, code: str, *, status: int | None = None, headers: dict[str, str] | None = None) -> None:
        known_status, self.text = _STATUS_AND_TEXT.get(code, (500, code))
        self.code = code
        self.status = known_status if status is None else status
        self.headers = headers or {}
        super().__init__(f"{self.status} {code}")


class NotModified(Exception):
    """The answer is 304: the reader has this version already."""

    def __init__(self, etag: str) -> None:
        self.etag = etag
        super().__init__(etag)


def usual_code(status: int) -> str:
    """Return the code the service usually gives with a status."""
    return _USUAL_CODE.get(status, "InternalError")
