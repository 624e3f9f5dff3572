"""The reports beside the tables: one file per audit, written again by the same audit."""

from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from shardaudit.adapters.aws.s3 import bucket_and_prefix, s3_client, s3_error
from shardaudit.adapters.lake.delta_rs import WarehouseUnreadableError
from shardaudit.model.config.settings import Settings

FOLDER = "reports"


def keep_html(settings: Settings, name: str, html: str) -> str:
    """Writes the file `name`.html into the warehouse's reports, and says where it is.

    Input:
        name: an audit's id, which is made of the configuration's names and digits alone.

    Raises:
        WarehouseUnreadableError: the folder cannot be written.
        S3RefusedError, S3UnreachableError: the bucket cannot.
    """
    place = f"{settings.warehouse.rstrip('/')}/{FOLDER}/{name}.html"
    if not place.startswith("s3a://"):
        try:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            Path(place).write_text(html, encoding="utf-8")
        except OSError as error:
            raise WarehouseUnreadableError(place, error) from error
        return place
    bucket, prefix = bucket_and_prefix(settings.warehouse)
    try:
        s3_client(settings.aws).put_object(
            Bucket=bucket,
            Key=f"{prefix}{FOLDER}/{name}.html",
            Body=html.encode(),
            ContentType="text/html; charset=utf-8",
        )
    except (BotoCoreError, ClientError) as error:
        raise s3_error(place, error) from error
    return place
