import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from shardaudit.adapters.aws.s3 import (
    S3RefusedError,
    S3UnreachableError,
    bucket_and_prefix,
    delta_rs_options,
    s3_error,
)
from shardaudit.model.config.parts import Aws


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        ("s3a://lake", ("lake", "")),
        ("s3a://lake/a/b", ("lake", "a/b/")),
    ],
)
def test_place_is_split_into_bucket_and_prefix(place: str, parts: tuple[str, str]) -> None:
    assert bucket_and_prefix(place) == parts


def test_error_is_final_when_asking_again_would_not_help() -> None:
    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "PutObject")
    assert isinstance(s3_error("s3a://lake", denied), S3RefusedError)
    assert isinstance(s3_error("s3a://lake", NoCredentialsError()), S3RefusedError)


def test_error_is_retryable_when_s3_is_away() -> None:
    busy = ClientError({"Error": {"Code": "SlowDown", "Message": "later"}}, "PutObject")
    away = EndpointConnectionError(endpoint_url="http://127.0.0.1:1")
    assert isinstance(s3_error("s3a://lake", busy), S3UnreachableError)
    assert isinstance(s3_error("s3a://lake", away), S3UnreachableError)


def test_delta_rs_is_allowed_http_only_for_a_stand_in_without_tls() -> None:
    assert "AWS_ALLOW_HTTP" not in delta_rs_options(Aws())
    local = delta_rs_options(Aws(endpoints={"s3": "http://127.0.0.1:5001"}))
    assert (local["AWS_ENDPOINT_URL"], local["AWS_ALLOW_HTTP"]) == ("http://127.0.0.1:5001", "true")
