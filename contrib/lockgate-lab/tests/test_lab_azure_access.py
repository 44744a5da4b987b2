"""Leases, access control lists and the umask, each answer after its REST page or the test of Hadoop's connector."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

ID, OTHER_ID = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"


def lease(dfs: Any, action: str, path: str = "f", **headers: str) -> Any:
    return dfs.call("POST", path, x_ms_lease_action=action, **headers)


def acquire(dfs: Any, identity: str = ID, seconds: int = -1) -> Any:
    return lease(dfs, "acquire", x_ms_lease_duration=str(seconds), x_ms_proposed_lease_id=identity)


def append(dfs: Any, **headers: str) -> Any:
    return dfs.call("PATCH", "f", "action=append&position=0", b"abc", **headers)


def test_a_leased_file_is_written_by_its_holder_only(dfs: Any) -> None:
    # ITestAzureBlobFileSystemLease.testTwoCreate, testTwoWritersCreateAppendWithInfiniteLeaseEnabled
    dfs.write("f", b"")
    dfs.make("g")
    taken = acquire(dfs)
    assert (taken.status, taken.headers["x-ms-lease-id"]) == (201, ID)
    status = dfs.status("f").headers
    assert (status["x-ms-lease-state"], status["x-ms-lease-status"]) == ("leased", "locked")
    assert status["x-ms-lease-duration"] == "infinite"
    refused = acquire(dfs, OTHER_ID)
    assert (refused.status, refused.code) == (409, "LeaseAlreadyPresent")
    attempts = [
        append(dfs),
        dfs.make("f"),
        dfs.rename("f", "x"),
        dfs.rename("g", "f"),
        dfs.call("DELETE", "f", "recursive=false"),
        dfs.call("PUT", "f", body=b"whole", x_ms_blob_type="BlockBlob"),
    ]
    assert [(each.status, each.code) for each in attempts] == [(412, "LeaseIdMissing")] * len(attempts)
    assert dfs.make("f", If_None_Match="*").code == "PathAlreadyExists"
    assert append(dfs, x_ms_lease_id=OTHER_ID).code == "LeaseIdMismatchWithBlobOperation"
    assert append(dfs, x_ms_lease_id=ID).status == 202
    assert dfs.rename("f", "x", x_ms_source_lease_id=ID).status == 201


def test_a_broken_lease_is_lost(dfs: Any) -> None:
    # ITestAzureBlobFileSystemLease.testWriteAfterBreakLease: "the lease for the resource has expired"
    dfs.write("f", b"")
    acquire(dfs)
    broken = lease(dfs, "break", x_ms_lease_break_period="0")
    assert (broken.status, broken.headers["x-ms-lease-time"]) == (202, "0")
    assert dfs.status("f").headers["x-ms-lease-state"] == "broken"
    lost = append(dfs, x_ms_lease_id=ID)
    assert (lost.status, lost.code) == (412, "LeaseLost")
    assert "the lease for the resource has expired" in lost.json["error"]["message"]
    assert lease(dfs, "renew", x_ms_lease_id=ID).code == "LeaseIsBrokenAndCannotBeRenewed"
    assert append(dfs).status == 202
    assert acquire(dfs, OTHER_ID).status == 201


def test_a_lease_is_released_renewed_and_changed_by_its_holder(dfs: Any) -> None:
    # Path - Lease
    dfs.write("f", b"")
    assert lease(dfs, "break").code == "LeaseNotPresentWithLeaseOperation"
    assert acquire(dfs, seconds=5).code == "InvalidHeaderValue"
    assert acquire(dfs, seconds=60).status == 201
    assert dfs.status("f").headers["x-ms-lease-duration"] == "fixed"
    assert lease(dfs, "renew", x_ms_lease_id=OTHER_ID).code == "LeaseIdMismatchWithLeaseOperation"
    assert lease(dfs, "renew", x_ms_lease_id=ID).status == 200
    assert lease(dfs, "change", x_ms_lease_id=ID, x_ms_proposed_lease_id=OTHER_ID).headers["x-ms-lease-id"] == OTHER_ID
    assert lease(dfs, "release", x_ms_lease_id=ID).code == "LeaseIdMismatchWithLeaseOperation"
    assert lease(dfs, "release", x_ms_lease_id=OTHER_ID).status == 200
    assert dfs.status("f").headers["x-ms-lease-state"] == "available"
    assert append(dfs, x_ms_lease_id=OTHER_ID).code == "LeaseNotPresentWithBlobOperation"
    assert lease(dfs, "acquire", "none", x_ms_lease_duration="-1").code == "PathNotFound"
    assert lease(dfs, "seize").code == "InvalidHeaderValue"


def shown(dfs: Any, path: str) -> tuple[str, str]:
    headers = dfs.call("HEAD", path, "action=getAccessControl").headers
    return headers["x-ms-permissions"], headers["x-ms-acl"]


@pytest.mark.parametrize(
    ("kind", "asked", "umask", "expected"),
    [
        ("file", "", "", "rw-r-----"),
        ("directory", "", "", "rwxr-x---"),
        ("file", "0777", "", "rwxr-x---"),
        ("file", "0777", "0000", "rwxrwxrwx"),
        ("directory", "0766", "0022", "rwxr--r--"),
        ("directory", "1777", "0000", "rwxrwxrwt"),
        ("file", "rwxrw-r--", "0007", "rwxrw----"),
    ],
)
def test_the_umask_is_taken_off(dfs: Any, kind: str, asked: str, umask: str, expected: str) -> None:
    # Path - Create, x-ms-umask (default 0027); ITestAzureBlobFileSystemPermission
    headers = {"x_ms_permissions": asked, "x_ms_umask": umask}
    assert dfs.make("p", kind, **{name: value for name, value in headers.items() if value}).status == 201
    assert shown(dfs, "p")[0] == expected


def test_an_access_control_list_has_a_mask_which_the_permissions_show(dfs: Any) -> None:
    # ITestAzureBlobFilesystemAcl.testModifyAclEntries, testSetPermission
    dfs.make("d", "directory")
    entries = "user::rwx,group::r-x,other::---,user:foo:rwx"
    assert dfs.call("PATCH", "d", "action=setAccessControl", x_ms_acl=entries).status == 200
    assert shown(dfs, "d") == ("rwxrwx---+", "user::rwx,user:foo:rwx,group::r-x,mask::rwx,other::---")
    dfs.call("PATCH", "d", "action=setAccessControl", x_ms_permissions="0740")
    assert shown(dfs, "d") == ("rwxr-----+", "user::rwx,user:foo:rwx,group::r-x,mask::r--,other::---")
    # testModifyAclEntriesWithAccessMask: what the list leaves out of the first three stays.
    dfs.call("PATCH", "d", "action=setAccessControl", x_ms_acl="user::rw-,mask::--x")
    assert shown(dfs, "d") == ("rw---x---+", "user::rw-,group::r-x,mask::--x,other::---")
    for wrong in ("user::", f"{entries},user:foo:r--", "user::rwx,group::r-x,other::---,friend:foo:rwx"):
        assert dfs.call("PATCH", "d", "action=setAccessControl", x_ms_acl=wrong).code == "InvalidInput"


def test_default_entries_are_inherited_and_the_umask_is_not_taken_off(dfs: Any) -> None:
    # ITestAzureBlobFilesystemAcl.testDefaultAclNewFile, testDefaultAclNewDir, testModifyAclEntriesDefaultOnFile
    base = "user::rwx,group::r-x,other::---"
    dfs.make("d", "directory")
    dfs.call("PATCH", "d", "action=setAccessControl", x_ms_acl=f"{base},default:user:foo:rwx")
    assert shown(dfs, "d")[1].endswith(
        "default:user::rwx,default:user:foo:rwx,default:group::r-x,default:mask::rwx,default:other::---"
    )
    dfs.make("d/f")
    dfs.make("d/e", "directory")
    assert shown(dfs, "d/f") == ("rw-rw----+", "user::rw-,user:foo:rwx,group::r-x,mask::rw-,other::---")
    assert shown(dfs, "d/e")[1] == shown(dfs, "d")[1].replace(
        base, "user::rwx,user:foo:rwx,group::r-x,mask::rwx,other::---"
    )
    assert dfs.call("PATCH", "d/f", "action=setAccessControl", x_ms_acl=f"{base},default:user:foo:rwx").status == 400


def test_a_range_comes_with_its_md5_if_asked_for(dfs: Any) -> None:
    # Path - Read, x-ms-range-get-content-md5; ITestAzureBlobFileSystemChecksum
    dfs.write("f", b"0123456789")
    answer = dfs.call("GET", "f", "action=read", Range="bytes=2-5", x_ms_range_get_content_md5="true")
    assert answer.headers["Content-MD5"] == base64.b64encode(hashlib.md5(b"2345").digest()).decode()
    assert "Content-MD5" not in dfs.call("GET", "f", "action=read", Range="bytes=2-5").headers
    dfs.write("large", bytes(5 << 20))
    refused = dfs.call("GET", "large", Range=f"bytes=0-{(4 << 20)}", x_ms_range_get_content_md5="true")
    assert (refused.status, refused.code) == (400, "OutOfRangeInput")
