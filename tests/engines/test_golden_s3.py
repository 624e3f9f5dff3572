"""The golden cases with traces, sink and warehouse on S3, on the embedded engine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shardaudit.adapters.engine.door import Engine
from shardaudit.model.config.parts import Aws
from shardaudit.simulate.s3proxy import REGION, S3Endpoint, s3_proxy
from shardaudit.store.warehouse import Warehouse
from tests.engines.process import EngineProcess
from tests.spark.golden import check, groups
from tests.spark.trial import Trial


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, S3Endpoint]]:
    """A bucket `lake`, which is a folder of this machine too, and where it is reached."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "lake").mkdir()
    with s3_proxy(folder) as endpoint:
        yield folder / "lake", endpoint


@pytest.fixture(scope="module")
def embedded(store: tuple[Path, S3Endpoint]) -> Iterator[EngineProcess]:
    """The embedded engine, which knows the way to the bucket."""
    _, endpoint = store
    known = endpoint.environment() | {"AWS_ENDPOINT": endpoint.url, "AWS_ALLOW_HTTP": "true"}
    with pytest.MonkeyPatch.context() as environment:
        for name, value in known.items():
            environment.setenv(name, value)
        with EngineProcess("embedded") as process:
            yield process


def judge(engine: Engine, *, number: int, folder: str, url: str) -> None:
    """Takes a group of the cases through a stream in the bucket."""
    group = groups()[number]
    aws = Aws.model_validate({"region": REGION, "endpoints": {"s3": url}})
    reached = f"s3a://lake/{number}"
    warehouse = Warehouse(engine.session, f"{reached}/warehouse", aws=aws, engine=engine.version)
    place = Path(folder, str(number))
    in_parquet = number % 2 == 1 and group[0].cut_at is None
    question = group[0].steps()[0].question
    check(Trial(warehouse, place, question, reached=reached, in_parquet=in_parquet), group)


# What a verdict is hangs on no storage: a few of them are enough for each day.
SOME = [n if n % 9 == 0 else pytest.param(n, marks=pytest.mark.drill) for n in range(len(groups()))]


@pytest.mark.parametrize("number", SOME)
def test_reviewed_answers_on_s3(
    embedded: EngineProcess, store: tuple[Path, S3Endpoint], number: int
) -> None:
    folder, endpoint = store
    embedded.call(judge, number=number, folder=str(folder), url=endpoint.url)
    assert (folder / str(number) / "warehouse" / "audits" / "_delta_log").is_dir()
