"""The door through which a request for a backfill goes: an address, or a folder."""

import os
import urllib.error
import urllib.request
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.s3 import bucket_and_prefix, s3_client, s3_error
from shardaudit.model.config.parts import Aws
from shardaudit.model.errors import ConfigError, FinalError, RetryableError

_TIMEOUT_S = 30
_BUSY = {408, 425, 429}
_SERVER_FAULT = 500


class RequestRefusedError(FinalError, PermissionError):
    """The address said no, and will say so again."""


class RequestUndeliveredError(RetryableError, ConnectionError):
    """The address did not answer, or had a fault of its own."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Whoever follows one asks another address by GET: a login page would count as delivered."""

    def redirect_request(self, *_: object) -> None:
        """None: the answer is an error."""


def deliver(
    document: str, target: str, *, name: str, aws: Aws, token_env: str | None = None
) -> str:
    """Posts the document, or writes it as `<folder>/<name>.json`; says where it is.

    Input:
        token_env: the environment variable that holds the token which the address wants.

    Raises:
        ConfigError: the variable is not set.
        RequestRefusedError: the address refused it.
        RequestUndeliveredError: the address did not take it; a later try may work.
        S3RefusedError: S3 said no.
        S3UnreachableError: S3 did not take it.
    """
    if target.startswith(("http://", "https://")):
        _post(document, target, name=name, token=_token(token_env))
        return target
    place = f"{target}/{name}.json"
    if target.startswith("s3a://"):
        bucket, key = bucket_and_prefix(place)
        try:
            s3_client(aws).put_object(Bucket=bucket, Key=key.rstrip("/"), Body=document.encode())
        except (BotoCoreError, ClientError) as error:
            raise s3_error(place, error) from error
    else:
        Path(target).mkdir(parents=True, exist_ok=True)
        draft = Path(f"{place}.draft")
        draft.write_text(document, encoding="utf-8")
        draft.replace(place)
    return place


def _token(variable: str | None) -> str | None:
    if variable is None:
        return None
    token = os.environ.get(variable)
    if not token:
        raise ConfigError("backfill.request_token_env", variable, "a variable that is set here")
    return token


def _post(document: str, url: str, *, name: str, token: str | None) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": name}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(  # noqa: S310 - the configuration's own address, http(s) alone
        url,
        data=document.encode(),
        headers=headers,
        method="POST",
    )
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_S):
            return
    except urllib.error.HTTPError as error:
        said = f"{url} answered {error.code} to the request {name}"
        if error.code in _BUSY or error.code >= _SERVER_FAULT:
            raise RequestUndeliveredError(f"{said}; a later try may work") from error
        raise RequestRefusedError(f"{said}: check backfill.request_to") from error
    except OSError as error:
        raise RequestUndeliveredError(f"{url}: {error}; a later try may work") from error
