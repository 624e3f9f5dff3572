"""The door to S3 for small objects; the data itself goes through Spark."""

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.whole_answers import with_whole_answers
from shardaudit.adapters.files.access_refused import is_refused, plain_words
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import FinalError, RetryableError, ShardauditError

if TYPE_CHECKING:  # the stubs are installed for development only
    from mypy_boto3_s3 import S3Client

# Answers that do not change by asking again, beside those that refuse.
_FINAL = {"404", "InvalidBucketName", "NoSuchBucket"}
_FINAL_KINDS = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound")


class S3RefusedError(FinalError, PermissionError):
    """S3 said no, and will say so again."""


class S3UnreachableError(RetryableError, ConnectionError):
    """S3 did not answer, or not properly."""


def s3_client(aws: Aws) -> "S3Client":
    """A client with the usual credential chain; a stand-in's address comes from the settings."""
    endpoint = aws.endpoint("s3")
    options = Config(
        s3={"addressing_style": "path" if endpoint else "auto"},
        connect_timeout=5,
        read_timeout=10,  # small objects: the lock's, three times, when a command gives up
        retries={"mode": "standard"},
    )
    client = boto3.client("s3", region_name=aws.region, endpoint_url=endpoint, config=options)
    return with_whole_answers(client)


def bucket_and_prefix(place: str) -> tuple[str, str]:
    """The two parts of `s3a://bucket/some/folder`; the prefix ends with / unless it is empty."""
    bucket, _, prefix = place.removeprefix("s3a://").partition("/")
    return bucket, f"{prefix.rstrip('/')}/" if prefix else ""


def delta_rs_options(aws: Aws) -> dict[str, str]:
    """The same for delta-rs; it takes them also for local tables, where they mean nothing."""
    options = {"max_retries": "3", "retry_timeout": "30s", "connect_timeout": "5s"}
    endpoint = aws.endpoint("s3")
    if aws.region:
        options["AWS_REGION"] = aws.region
    if endpoint:
        options["AWS_ENDPOINT_URL"] = endpoint
        options["AWS_ALLOW_HTTP"] = str(endpoint.startswith("http://")).lower()
    return options


def s3_error(place: str, error: BotoCoreError | ClientError) -> ShardauditError:
    """Our error for one of boto3's, to be raised from it."""
    text = f"{place}: {plain_words(error)}"
    if isinstance(error, ClientError):
        code = error.response.get("Error", {}).get("Code", "")
        is_final = code in _FINAL or is_refused(code)
    else:
        is_final = type(error).__name__ in _FINAL_KINDS
    return S3RefusedError(text) if is_final else S3UnreachableError(text)
