"""A stream of which a share of the ids is audited: the same ids on both sides, and what it says."""

from shardaudit.model.rates import audit_rates, wilson_interval
from shardaudit.model.verdict import Verdict
from shardaudit.producer.sample import is_sampled
from tests.builders import sink_row, trace_line
from tests.spark.audit.nights import audited, published
from tests.spark.lake import Lake

SENT, LOST, RATE = range(0, 4000, 10), range(1000, 1400, 10), 0.5


def test_an_audit_of_a_sample_sees_the_emitters_ids_and_says_how_far_it_can_be_trusted(
    lake: Lake,
) -> None:
    lake.settings["sample_rate"] = RATE
    lake.log("all.jsonl", [trace_line(n) for n in SENT])
    lake.land([sink_row(n) for n in SENT if n not in LOST])
    report = audited(lake, 0)
    sent, lost = (
        sum(is_sampled(str(trace_line(n)["message_id"]), RATE) for n in of) for of in (SENT, LOST)
    )
    counts = {"sent": sent, "landed": sent - lost, "missing": lost, "matched": sent - lost}
    assert report.verdict is Verdict.LOSS
    assert {name: report.counts[name] for name in counts} == counts
    assert report.rates == audit_rates(report.counts, sample_rate=RATE)
    assert report.rates["missing"].between == wilson_interval(lost, sent)
    assert published(lake, report) == report
