"""S3A's names, as a Spark session holds them and as options: what each is taken for."""

from __future__ import annotations

import pytest
from lockgate.errors import OptionError
from lockgate.model.options import JobOptions
from lockgate.model.redaction import redact
from lockgate_s3.hadoop_names import SESSION_NAMES
from lockgate_s3.plugin import lockgate_stores
from lockgate_s3.settings import S3Settings

PROVIDER = "fs.s3a.aws.credentials.provider"
KEYS = {"fs.s3a.access.key": "A", "fs.s3a.secret.key": "S", "fs.s3a.session.token": "T"}


def test_a_minio_as_spark_is_told_of_it() -> None:
    told = {
        "fs.s3a.endpoint": "minio:9000",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    settings = S3Settings.resolve(told | KEYS, {"AWS_ENDPOINT_URL": "http://other", "AWS_REGION": "x"}, "b")
    assert settings.base_of("b") == "http://minio:9000/b"
    assert (settings.key, settings.secret, settings.token) == ("A", "S", "T")


def test_a_buckets_own_names_go_before_those_of_all_and_another_buckets_do_not_count() -> None:
    told = {"fs.s3a.endpoint": "http://all", "fs.s3a.bucket.b.c.endpoint": "http://one", **KEYS}
    told |= {"fs.s3a.bucket.b.c.access.key": "A2", "fs.s3a.bucket.b.c.secret.key": "S2"}
    one, other = S3Settings.resolve(told, {}, "b.c"), S3Settings.resolve(told, {}, "b")
    assert (one.endpoint_url, one.key, one.secret) == ("http://one", "A2", "S2")
    assert (other.endpoint_url, other.key, other.secret) == ("http://all", "A", "S")


def test_our_own_names_go_before_hadoops_and_credentials_are_never_mixed() -> None:
    told = {**KEYS, "fs.s3a.endpoint": "http://all", "endpoint_url": "http://ours", "key": "K", "secret": "Z"}
    settings = S3Settings.resolve(told, {})
    assert (settings.endpoint_url, settings.key, settings.secret, settings.token) == ("http://ours", "K", "Z", "")
    assert S3Settings.resolve({**KEYS, "profile": "mine"}, {}).key == ""
    anonymous = S3Settings.resolve({**KEYS, PROVIDER: "com.example.Own", "anon": "true"}, {})
    assert (anonymous.anon, anonymous.key) == (True, "")


@pytest.mark.parametrize(
    ("providers", "given", "expected"),
    [
        ("org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider", KEYS, ("A", "S", "", False)),
        ("org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider", KEYS, ("A", "S", "T", False)),
        ("org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider", KEYS, ("", "", "", True)),
        ("software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider", KEYS, ("", "", "", False)),
        ("a.TemporaryAWSCredentialsProvider,\n  a.IAMInstanceCredentialsProvider", {}, ("", "", "", False)),
        ("com.example.Own, com.amazonaws.auth.DefaultAWSCredentialsProviderChain", {}, ("", "", "", False)),
    ],
)
def test_providers_of_credentials_are_asked_in_their_order(providers, given, expected) -> None:
    settings = S3Settings.resolve({**given, PROVIDER: providers}, {})
    assert (settings.key, settings.secret, settings.token, settings.anon) == expected


def test_a_provider_that_nothing_here_stands_for_is_refused_and_what_to_give_is_said() -> None:
    with pytest.raises(OptionError, match="no provider of credentials that is known") as caught:
        S3Settings.resolve({PROVIDER: "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider", **KEYS}, {})
    assert "store.profile" in caught.value.next_step
    assert "AssumedRole" in caught.value.where


@pytest.mark.parametrize(
    ("endpoint", "base"),
    [
        ("s3.amazonaws.com", "https://b.s3.us-east-1.amazonaws.com"),
        ("https://s3.eu-west-1.amazonaws.com/", "https://b.s3.eu-west-1.amazonaws.com"),
        ("s3-ap-south-1.amazonaws.com", "https://b.s3.ap-south-1.amazonaws.com"),
    ],
)
def test_an_endpoint_of_aws_is_none_and_tells_the_region(endpoint: str, base: str) -> None:
    assert S3Settings.resolve({"fs.s3a.endpoint": endpoint}, {}).base_of("b") == base


def test_the_deprecated_names_of_encryption_are_read_and_keys_of_clients_refused_by_them() -> None:
    told = {"fs.s3a.server-side-encryption-algorithm": "SSE-KMS", "fs.s3a.server-side-encryption.key": "k"}
    assert S3Settings.resolve(told, {}).encryption_key == "k"
    with pytest.raises(OptionError, match="keys of customers") as caught:
        S3Settings.resolve({"fs.s3a.server-side-encryption-algorithm": "SSE-C"}, {})
    assert "fs.s3a.server-side-encryption-algorithm" in caught.value.where, "the name by which it was given"


def test_every_name_that_a_session_may_hold_is_an_option_too() -> None:
    kind = lockgate_stores()
    assert kind.session_options == SESSION_NAMES
    assert set(kind.session_options) <= set(kind.options or ())
    assert "fs.s3a.multipart.size" not in kind.session_options


def test_no_secret_of_hadoops_names_is_shown() -> None:
    shown = repr(JobOptions(store={**KEYS, "fs.s3a.bucket.b.secret.key": "S2"})) + repr(S3Settings.resolve(KEYS, {}))
    assert not any(f"'{value}'" in shown for value in ("A", "S", "T", "S2"))
    text = redact("spark.hadoop.fs.s3a.secret.key=abc/def+ fs.s3a.session.token: xyz fs.azure.account.key.a.dfs.x=k1==")
    assert not any(secret in text for secret in ("abc", "xyz", "k1"))
