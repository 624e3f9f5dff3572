"""What is posted goes by HTTP or HTTPS, and nowhere else."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest

from shardaudit.adapters.http_post import post


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_what_is_no_http_is_not_opened(scheme: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.touch()
    request = urllib.request.Request(f"{scheme}:{file}", b"{}")  # noqa: S310 - that is the test
    with pytest.raises(urllib.error.URLError, match=f"unknown url type: {scheme}"):
        post(request, timeout=1)
