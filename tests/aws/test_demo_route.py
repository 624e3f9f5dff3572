"""The demo's route: its messages pass our emitter and our consumer, and the audit names the hop."""

import os
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from shardaudit.model.config.settings import load_settings
from shardaudit.simulate.stand_in_process import kinesis_stand_in
from tests.engines.commands import of, run
from tools.demo_route import NamedHops, Orders, add_orders, named_hops, route_view

pytestmark = pytest.mark.aws

HOPS = {"producer → router": 5, "router → sink": 8}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Orders, NamedHops]:
    """The orders, put, routed and audited, and what the audit named."""
    folder: Path = tmp_path_factory.mktemp("demo")
    config = folder / "shardaudit.toml"
    with kinesis_stand_in() as url:
        aws = f'[aws]\nregion = "us-east-1"\nendpoints = {{ kinesis = "{url}" }}\n'
        config.write_text(f'warehouse = "warehouse"\nengine = "embedded"\n{aws}')
        orders = add_orders(url, config)
        secrets = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
        embedded = os.environ | secrets | {"SHARDAUDIT_ENGINE": "embedded"}
        done = run(of(folder, "audit", *orders.asked), embedded)
    assert done.returncode == 0, done.stderr[-2000:]
    return orders, named_hops(load_settings(config), orders)


def shown(named: NamedHops) -> str:
    page = StringIO()
    Console(file=page, width=200).print(route_view(named))
    return page.getvalue()


def test_each_lost_order_is_named_on_the_hop_that_lost_it(told: tuple[Orders, NamedHops]) -> None:
    orders, named = told
    assert (named.planted, named.is_equal) == (HOPS, True)
    assert len(orders.lost) == sum(HOPS.values())
    assert "5 messages lost on producer → router, 8 messages lost on router → sink" in shown(named)


def test_order_on_another_hop_is_told_when_it_was_named_there(
    told: tuple[Orders, NamedHops],
) -> None:
    wrong = replace(told[1], unlike=("m1: planted router → sink, found producer → router",))
    assert not wrong.is_equal
    assert "m1: planted router → sink, found producer → router" in shown(wrong)
