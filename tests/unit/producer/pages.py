"""What the pages for producers and consumers show."""

import re

from tests.unit.producer.puts import ROOT

PRODUCERS = (ROOT / "docs" / "producers.md").read_text()
CONSUMERS = (ROOT / "docs" / "consumers.md").read_text()


def shown(language: str, page: str) -> list[str]:
    """The blocks of a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def example(page: str, heading: str, folder: object) -> str:
    """The Python under a heading, for a folder of traces and a client `kinesis` of ours."""
    [code] = shown("python", page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0])
    code, times = re.subn(r'"s3://logs/\w+/events/(\w+/)?"', repr(str(folder)), code)
    assert times == 1
    return code.replace('boto3.client("kinesis")', "kinesis")
