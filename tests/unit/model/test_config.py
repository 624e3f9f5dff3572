from datetime import timedelta
from pathlib import Path

import pytest

from shardaudit.model.config.choices import BackfillMode, PositionSource, SinkFormat
from shardaudit.model.config.parts import Location, Sink, Traces
from shardaudit.model.config.settings import Settings, Stream, load_settings, read_columns
from shardaudit.model.errors import ConfigError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.input_columns import PARENT_IDS
from tests.configurations import LEAST

# The first example that was promised to users, word for word.
CONTRACT = """
warehouse = "s3a://lake/shardaudit"

[aws]
region = "us-east-1"
endpoint_url = "http://127.0.0.1:5000"
endpoints = { s3 = "http://127.0.0.1:5001" }

[spark]
"spark.sql.shuffle.partitions" = 64

[streams.events]
stream_name = "events"
retention = "168h"
bucket = "60s"
settle_grace = "10m"
latency_slo = "5m"
audit_window = "7d"
sample_rate = 1.0
trace_coverage_floor = 0.99
tolerance = 0.0

[streams.events.traces]
path = "s3a://logs/traces/events/"
format = "json"
columns = { message_id = "id" }

[streams.events.sink]
path = "s3a://lake/events"
format = "delta"
exclusive = false
columns = { landed_at = "ingested_at" }
derived = { day = "date_format(sent_at, 'yyyy-MM-dd')" }

[streams.events.positions]
source = "sink"

[streams.events.backfill]
mode = "merge"
decoder = "json"
fields = { message_id = "$.meta.id" }
read_share = 0.5
approve = "always"
auto_max_bytes = "1GiB"
"""


PLACE = "[streams.events.locations.router]\n"
FIRST = f'{PLACE}after = ["producer"]\n'


def loaded(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "shardaudit.toml"
    file.write_text(text)
    return load_settings(file)


def test_contract_example_is_understood(tmp_path: Path) -> None:
    settings = loaded(tmp_path, CONTRACT)
    events = settings.stream("events")
    assert settings.spark == {"spark.sql.shuffle.partitions": "64"}
    assert settings.aws.endpoint("s3") == "http://127.0.0.1:5001"
    assert settings.aws.endpoint("kinesis") == "http://127.0.0.1:5000"
    assert events.retention == timedelta(days=7)
    assert events.traces.columns == {"message_id": "id"}
    assert events.sink.format is SinkFormat.DELTA
    assert events.backfill.mode is BackfillMode.MERGE
    assert events.backfill.auto_max_bytes == 2**30


def test_defaults_hold_when_only_the_required_keys_are_given(tmp_path: Path) -> None:
    events = loaded(tmp_path, LEAST).stream("events")
    assert events.retention is None
    assert (events.bucket, events.audit_window) == (timedelta(seconds=60), timedelta(days=7))
    assert events.positions.source is PositionSource.SINK


def test_places_are_absolute_when_the_file_says_them_relative(tmp_path: Path) -> None:
    settings = loaded(tmp_path, LEAST)
    assert settings.warehouse == str(tmp_path / "lake")
    assert settings.streams["events"].traces.path == str(tmp_path / "traces")
    assert settings.streams["events"].sink.path == "/sink"


def test_path_that_delta_takes_for_another_is_refused_for_delta_alone() -> None:
    sink = Sink(path="/100%/a b%20c", format=SinkFormat.PARQUET)
    assert sink.path.endswith("%20c")
    stream = {"stream_name": "events", "traces": Traces(path="/a%20b")}
    assert Stream.model_validate(stream | {"sink": sink}).sink.path == sink.path
    assert Stream.model_validate(stream | {"sink": Sink(path="/100%/é [b]?#")}).sink.path
    with pytest.raises(ValueError, match="without '%20'"):
        Stream.model_validate(stream | {"sink": Sink(path=sink.path)})


def test_sink_may_be_without_what_is_not_needed() -> None:
    sink = {"path": "s", "without": ["arrived_at", "shard_id"]}
    assert Sink.model_validate(sink).without == ["arrived_at", "shard_id"]
    for name in ("landed_at", "arival"):
        with pytest.raises(ValueError, match="arrived_at"):
            Sink.model_validate(sink | {"without": [name]})


def test_digest_changes_when_a_value_does() -> None:
    def stream(tolerance: float) -> Stream:
        return Stream(
            stream_name="e", tolerance=tolerance, traces=Traces(path="t"), sink=Sink(path="s")
        )

    plain = stream(0.1)
    with_place = plain.model_copy(update={"locations": {"router": Location(after=["producer"])}})
    assert plain.digest() == stream(0.1).digest() == "77d00cedaa73"
    with_budget = plain.model_copy(update={"loss_budget": 0.001})
    assert with_place.digest() != plain.digest() == with_budget.digest()  # no verdict hangs on it
    assert stream(0.1).digest() != stream(0.2).digest()
    assert len(stream(0.1).digest()) == 12


def test_unknown_stream_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--stream.*one of events \(did you mean events\?\)"):
        loaded(tmp_path, LEAST).stream("event")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('bucket = "60s"', 'buckett = "60s"', r"events\.buckett: .*did you mean bucket\?"),
        ("[streams.events.traces]", "[streams.events.trace]", r"trace: .*did you mean traces\?"),
        ("warehouse =", "warehause =", r"toml: warehause: .*did you mean warehouse\?"),
        ('"60s"', '"7s"', "events.bucket: found '7s', wanted a length that divides a day"),
        ('"60s"', "60", "events.bucket: found 60, wanted a text with a whole number and a unit"),
        ('"60s"', '"0s"', "events.bucket: found '0s'"),
        ('"168h"', '"9000h"', "events.retention: found '9000h', wanted at most 8760h"),
        ('"7d"', '"400d"', "events.audit_window: .*wanted at most 8784h"),
        ("sample_rate = 1.0", "sample_rate = 0", "sample_rate: found 0, wanted greater than"),
        ("sample_rate = 1.0", "sample_rate = 4e-7", "sample_rate: found 4e-07, wanted greater"),
        ("sample_rate = 1.0", 'sample_rate = "1"', "sample_rate: found '1', wanted a valid number"),
        *(
            ("tolerance = 0.0", f"loss_budget = {value}", f"loss_budget: found .*, wanted {said}")
            for value, said in {
                "0": "greater than 0",
                "-0.1": "greater than 0",
                "nan": "less than 1",
                "1": "less than 1",
                "inf": "less than 1",
                '"0.01"': "a valid number",
                "true": "a valid number",
                "[0.1]": "a valid number",
            }.items()
        ),
        ("tolerance = 0.0", "loss_buget = 0.1", r"loss_buget: .*did you mean loss_budget\?"),
        ("tolerance = 0.0", "tolerance = true", "tolerance: found True, wanted a valid number"),
        ("exclusive = false", 'exclusive = "no"', "exclusive: found 'no', wanted a valid boolean"),
        ('"delta"', '"detla"', r"sink\.format: found 'detla', .*did you mean delta\?"),
        ('"delta"', '"parquet"', r"backfill\.mode: .*wanted append, republish or request"),
        ('source = "sink"', 'source = "kcl"', "wanted source = kcl with table"),
        ('source = "sink"', 'source = "sink"\npath = "x"', "wanted source = sink with nothing"),
        ('"always"\nauto_max_bytes = "1GiB"', '"auto"', r"approve: .*wanted also auto_max_bytes"),
        ('"1GiB"', '"1GB"', "auto_max_bytes: found '1GB'"),
        ("landed_at =", "landedat =", r"columns\.landedat: .*did you mean landed_at\?"),
        ('message_id = "id"', 'message_id = "_sa_id"', "does not begin with _sa_"),
        ("{ s3 =", "{ s4 =", r"aws\.endpoints\.s4: .*one of dynamodb, kinesis, s3"),
        ('"s3a://lake/events"', '"s3://lake/events"', "s3a://bucket/folder"),
        ('"s3a://lake/events"', '""', r"sink\.path: found ''"),
        ('"s3a://lake/events"', '"/a%20b"', r"sink\.path: found '/a%20b', wanted .* without '%20'"),
        ('"s3a://lake/events"', r'"/a\\b"', r"without .* rename that folder, or link to it"),
        ('"s3a://lake/shardaudit"', r'"la\nke"', r"toml: warehouse: found .* without '\\n'"),
        ('"spark.sql.shuffle.partitions"', "spark.sql.shuffle.partitions", "whole key in quotes"),
        ('"spark.sql.shuffle.partitions"', '"sql.shuffle"', 'begins with "spark."'),
        ("[streams.events]\n", "[streams.'ev;x']\n", "ev;x"),
        ('stream_name = "events"', "", r"events\.stream_name: found 'nothing'"),
        ("[spark]", "[spark", "wanted TOML"),
        (PLACE, f'{PLACE}after = ["gate"]', r"locations\.router\.after: found 'gate', .*producer"),
        (PLACE, f"{PLACE}after = []", r"locations\.router\.after: found \[\], wanted what leads"),
        (
            PLACE,
            f'{PLACE}after = "producer"',
            r"router\.after: found 'producer', wanted a valid list",
        ),
        (PLACE, f"{FIRST}share = 0", r"locations\.router\.share: found 0, wanted a number above 0"),
        (PLACE, f"{FIRST}share = 1.1", r'router\.share: found 1.1, wanted .* 1, or "traced"'),
        (PLACE, f"{FIRST}share = 'trace'", r"router\.share: found 'trace', wanted a number"),
        (PLACE, f"{FIRST}share = true", r"router\.share: found True, wanted a number"),
        (PLACE, f"{FIRST}shar = 1.0", r"router\.shar: .*did you mean share\?"),
        (
            "warehouse",
            'expectations = "s3a://a-b/c"\nwarehouse',
            "s3a://a-b/c', wanted a local folder",
        ),
    ],
)
def test_mistake_is_refused_with_key_value_and_cure(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    whole = CONTRACT + FIRST
    assert old in whole
    with pytest.raises(ConfigError, match=said) as refused:
        loaded(tmp_path, whole.replace(FIRST if old is PLACE else old, new, 1))
    assert str(refused.value).startswith(f"{tmp_path}/shardaudit.toml: ")
    assert refused.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[aws]\n", '[aws]\nsecret_access_key = "hush"\n'),
        ('"spark.sql.shuffle.partitions" = 64', '"spark.hadoop.fs.s3a.secret.key" = "hush"'),
        ('"http://127.0.0.1:5000"', '"http://me:hush@127.0.0.1:5000"'),
    ],
)
def test_credential_is_refused_and_not_repeated(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, CONTRACT.replace(old, new, 1))
    assert "hush" not in str(refused.value)


def test_absent_file_is_refused_with_where_it_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--config FILE, \$SHARDAUDIT_CONFIG or"):
        load_settings(tmp_path / "none.toml")


ENDING = """
warehouse = "s3a://lake/shardaudit"

[streams.orders]
stream_name = "orders"
traces = { path = "s3a://logs/orders/" }
sink = { place = "splitter" }

[streams.orders.locations.splitter]
after = ["producer"]

[streams.lines]
stream_name = "lines"
made_from = "orders"
traces = { path = "s3a://logs/lines/" }
sink = { path = "s3a://lake/lines" }
"""


def test_stream_that_ends_at_a_place_has_its_sink_in_the_warehouse(tmp_path: Path) -> None:
    settings = loaded(tmp_path, ENDING)
    path = "s3a://lake/shardaudit/handed_over/stream=orders/place=splitter"
    assert settings.stream("orders").sink.path == path
    assert settings.stream("lines").made_from == "orders"
    assert Settings.model_validate(settings.model_dump()) == settings
    named = [PARENT_IDS in read_columns(stream) for stream in settings.streams.values()]
    assert named == [True, True]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'place = "s',
            'place = "s3',
            r"orders\.sink\.place: found 's3plitter', wanted the one place",
        ),
        ('place = "s', 'path = "s3a://a-b", place = "s', r"orders\.sink: found 'path and place'"),
        ('r" }', 'r", exclusive = true }', r"orders\.sink\.exclusive: found 'True', wanted place"),
        ('["producer"]', '["producer"]\nshare = 0.5', r"splitter\.share: found 0.5, wanted 1"),
        ('["producer"]', '["producer"]\nshare = "traced"', r"splitter\.share: found 'traced', wan"),
        (
            "[streams.lines]",
            '[streams.orders.locations.other]\nafter = ["splitter"]\n[streams.lines]',
            r"sink\.place: found 'splitter', wanted the one place at the end .* not other",
        ),
        (
            "[streams.lines]",
            '[streams.orders.backfill]\nmode = "merge"\n[streams.lines]',
            r"backfill\.mode: found 'merge', wanted republish or request",
        ),
        ('made_from = "orders"', 'made_from = "order"', r"made_from: found 'order', .*mean orders"),
        ('made_from = "orders"', 'made_from = "lines"', r"made_from: found 'lines', .* is a place"),
        (
            "[streams.orders]\n",
            '[streams.orders]\nmade_from = "orders"\n',
            "found 'orders made from orders', wanted an order of streams",
        ),
    ],
)
def test_what_can_be_no_end_of_a_stream_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in ENDING
    with pytest.raises(ConfigError, match=said):
        loaded(tmp_path, ENDING.replace(old, new, 1))
