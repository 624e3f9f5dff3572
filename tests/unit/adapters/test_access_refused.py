"""Storage that says no is not asked again; storage that says nothing is."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake.exceptions import DeltaError

from shardaudit.adapters.files.access_refused import AccessRefusedError, plain_words
from shardaudit.adapters.files.files import StorageError, storage_error
from shardaudit.adapters.lake import delta_rs
from shardaudit.adapters.lake.broken_tables import WarehouseUnreadableError
from shardaudit.adapters.lake.delta_rs import DeltaRs
from shardaudit.model.config.parts import Aws
from shardaudit.model.tables.audit_tables import AUDITS

# As pyarrow 26, delta-rs 1.6 and a local disk said them.
NO = [
    "When listing objects under key 'x' in bucket 'b': AWS Error ACCESS_DENIED during "
    "ListObjectsV2 operation: Access Denied",
    "Generic S3 error: The operation lacked the necessary privileges to complete for path x: "
    "Client error with status 403 Forbidden: <Code>AccessDenied</Code>",
    "Generic S3 error: Client error with status 400 Bad Request: <Code>ExpiredToken</Code>",
    "[Errno 13] Failed to open local file '/lake/a.parquet'. Detail: [errno 13] Permission denied",
]
NO += [
    f"Generic S3 error: {'/a-long-folder' * 30}: " + NO[1],
    "head on s3a://b/x: AmazonS3Exception: (Service: S3, Status Code: 403, Request ID: 1)",
    "An error occurred (403) when calling the HeadObject operation: Forbidden",
]
NOTHING = [
    "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 28, Timeout was reached",
    "Generic S3 error: Server returned non-2xx status code: 503 Service Unavailable: SlowDown",
    "Generic S3 error: error sending request for url (http://bucket/part-403a.parquet)",
    "Generic S3 error: error sending request for url (http://bucket/day/403/part-403.parquet)",
]


@pytest.mark.parametrize("said", NO)
def test_a_refusal_is_final(said: str) -> None:
    assert isinstance(storage_error("s3a://lake/a", OSError(said)), AccessRefusedError)


@pytest.mark.parametrize("said", NOTHING)
def test_silence_may_pass(said: str) -> None:
    assert isinstance(storage_error("s3a://lake/a", OSError(said)), StorageError)


def test_what_the_server_says_is_told_however_long_the_address_is() -> None:
    asked = f"GET http://minio:9000/lake?list-type=2&prefix={'warehouse%2F' * 40} in 5.1ms"
    said = f"Generic S3 error: Error performing {asked} - 403 Forbidden: <Code>ExpiredToken</Code>"
    told = "GET http://minio:9000/… - 403 Forbidden: <Code>ExpiredToken</Code>"
    assert told in str(storage_error("s3a://lake/a", OSError(said)))
    beside = "https://s3/k:<Code>ExpiredToken</Code> of s3://lake/cells/part-1.parquet"
    told = "https://s3/…<Code>ExpiredToken</Code> of s3://lake/cells/part-1.parquet"
    assert plain_words(beside) == told


@pytest.mark.parametrize(
    "said",
    [
        "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIASECRETSECRET0001"
        "</AWSAccessKeyId><StringToSign>AWS4-HMAC SECRET</StringToSign></Error>",
        "<Code>ExpiredToken</Code><Token-0>IQoJSECRET//</Token-0>",
        "GET https://b.s3.amazonaws.com/x?X-Amz-Credential=ASIASECRETSECRET0001%2F2026"
        "&X-Amz-Security-Token=IQoJSECRET&X-Amz-Signature=SECRET: 403 Forbidden",
    ],
)
def test_secrets_that_storage_repeats_are_told_to_nobody(said: str) -> None:
    error = storage_error("s3a://lake/a", OSError(said))
    assert isinstance(error, AccessRefusedError)
    assert "SECRET" not in str(error)


def failing(said: str) -> Callable[..., None]:
    def fails(*_: object, **__: object) -> None:
        raise DeltaError(said)

    return fails


@pytest.mark.parametrize(
    ("said", "error"),
    [(said, AccessRefusedError) for said in NO] + [(s, WarehouseUnreadableError) for s in NOTHING],
)
def test_the_warehouse_tells_them_apart(
    said: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_rs, "DeltaTable", failing(said))
    with pytest.raises(error, match="audits"):
        DeltaRs(str(tmp_path), Aws()).create(AUDITS)
