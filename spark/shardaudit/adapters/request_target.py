"""The door through which a request for a backfill goes: an address, or a folder."""

import os
import re
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.s3 import bucket_and_prefix, s3_client, s3_error
from shardaudit.adapters.http_post import post
from shardaudit.model.config.parts import Aws, Backfill
from shardaudit.model.errors import ConfigError, FinalError, RetryableError

_TIMEOUT_S = 30
_BUSY = {408, 425, 429}
_SERVER_FAULT = 500


class RequestRefusedError(FinalError, PermissionError):
    """The address said no, and will say so again."""


class RequestUndeliveredError(RetryableError, ConnectionError):
    """The address did not answer, or had a fault of its own."""


@dataclass(frozen=True, slots=True)
class Addressee:
    """Who is asked: an address or a folder; `shown`: what of it people may read."""

    place: str = field(repr=False)
    shown: str
    token: str | None = field(default=None, repr=False)


def addressee(backfill: Backfill) -> Addressee | None:
    """Whom the configuration, and the environment where it says so, name; None: nobody.

    Raises:
        ConfigError: a variable is not set, or holds no address.
    """
    token = _held("request_token_env", backfill.request_token_env, "a variable that is set here")
    if backfill.request_to is not None:
        return Addressee(backfill.request_to, backfill.request_to, token)
    key, variable = "request_to_env", backfill.request_to_env
    address = _held(key, variable, "a variable that holds an address here")
    if address is None:
        return None
    if re.fullmatch(r"https?://[^\s/@?#]+(/[^\s#]*)?", address) is None:
        raise ConfigError(f"backfill.{key}", variable, "http://host/path in it, without user")
    return Addressee(address, f"the address in ${variable}", token)  # a secret may be part of it


def _held(key: str, variable: str | None, wanted: str) -> str | None:
    """What a variable of the environment holds."""
    value = None if variable is None else os.environ.get(variable)
    if variable is not None and not value:
        raise ConfigError(f"backfill.{key}", variable, wanted)
    return value


def deliver(document: str, to: Addressee, *, name: str, aws: Aws) -> str:
    """Posts the document, or writes it as `<folder>/<name>.json`; says where it is.

    Raises:
        RequestRefusedError: the address refused it.
        RequestUndeliveredError: the address did not take it; a later try may work.
        S3RefusedError: S3 said no.
        S3UnreachableError: S3 did not take it.
    """
    if to.place.startswith(("http://", "https://")):
        _post_to(to, document, name=name)
        return to.shown
    place = f"{to.place}/{name}.json"
    if place.startswith("s3a://"):
        bucket, key = bucket_and_prefix(place)
        try:
            s3_client(aws).put_object(Bucket=bucket, Key=key.rstrip("/"), Body=document.encode())
        except (BotoCoreError, ClientError) as error:
            raise s3_error(place, error) from error
    else:
        Path(to.place).mkdir(parents=True, exist_ok=True)
        draft = Path(f"{place}.draft")
        draft.write_text(document, encoding="utf-8")
        draft.replace(place)
    return place


def _post_to(to: Addressee, document: str, *, name: str) -> None:
    headers = {"Content-Type": "application/json", "Idempotency-Key": name}
    if to.token is not None:
        headers["Authorization"] = f"Bearer {to.token}"
    request = urllib.request.Request(  # noqa: S310 - the configuration's own address, http(s) alone
        to.place,
        data=document.encode(),
        headers=headers,
        method="POST",
    )
    try:
        post(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        said = f"{to.shown} answered {error.code} to the request {name}"
        if error.code in _BUSY or error.code >= _SERVER_FAULT:
            raise RequestUndeliveredError(f"{said}; a later try may work") from error
        raise RequestRefusedError(f"{said}: check backfill.request_to") from error
    except OSError as error:
        raise RequestUndeliveredError(f"{to.shown}: {error}; a later try may work") from error
