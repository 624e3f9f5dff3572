"""Reports in a warehouse on S3."""

import boto3
import pytest
from moto import mock_aws

from shardaudit.adapters.aws.s3 import S3RefusedError
from shardaudit.model.config.parts import Aws
from shardaudit.model.config.settings import Settings
from shardaudit.page.page_report import keep_html

pytestmark = pytest.mark.aws


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")


def test_a_report_is_a_page_of_the_bucket() -> None:
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="lake")
        settings = Settings(warehouse="s3a://lake/sa", aws=Aws(region="us-east-1"), streams={})
        assert keep_html(settings, "a", "<p>é</p>") == "s3a://lake/sa/reports/a.html"
        found = client.get_object(Bucket="lake", Key="sa/reports/a.html")
        assert found["Body"].read().decode() == "<p>é</p>"
        assert found["ContentType"] == "text/html; charset=utf-8"


def test_a_bucket_that_is_not_there_is_named() -> None:
    settings = Settings(warehouse="s3a://none/sa", aws=Aws(region="us-east-1"), streams={})
    with mock_aws(), pytest.raises(S3RefusedError, match=r"s3a://none/sa/reports/a\.html"):
        keep_html(settings, "a", "x")
