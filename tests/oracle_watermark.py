"""The oracle's watermark: a list of every cell that was ever audited, walked from the first on."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shardaudit.model.verdict import Kind, State
from tests.history import Finding, FindingKey, Outcome, Question

SETTLED = {State.RECOVERED, State.FALSE_ALARM, State.ACCEPTED}
LACKING = {Kind.MISSING, Kind.DUPLICATED}


@dataclass
class Record:
    """What the published audits of a stream said of each cell, the newest of them.

    `held`: by shard and bucket, whether the cell could not be called complete.
    """

    bucket: timedelta
    held: dict[str, dict[datetime, bool]] = field(default_factory=lambda: defaultdict(dict))
    first: dict[str, datetime] = field(default_factory=dict)
    newest: dict[str, datetime] = field(default_factory=dict)

    def count(self, outcome: Outcome, question: Question) -> None:
        """One more audit. As of an earlier time it knows less than what is there."""
        for shard_id, start in outcome.cells:
            cells, newest = self.held[shard_id], self.newest.get(shard_id, question.as_of)
            first = self.first.setdefault(shard_id, question.start)
            if question.as_of >= newest or start not in cells or start < first:
                cells[start] = (shard_id, start) in outcome.held
        for shard_id, since, until in outcome.quiet:
            for start in self.held[shard_id]:
                if since <= start < until and start >= self.first[shard_id]:
                    self.held[shard_id][start] = True
        for shard_id in {shard_id for shard_id, _ in outcome.cells}:
            known = self.newest.get(shard_id, question.as_of)
            self.newest[shard_id] = max(known, question.as_of)

    def watermark(
        self, findings: Mapping[FindingKey, Finding], question: Question
    ) -> datetime | None:
        """Until when every shard is complete; None when there was never one."""
        lacking: dict[str, set[datetime]] = defaultdict(set)
        for (_, kind), finding in findings.items():
            if kind in LACKING and finding.state not in SETTLED:
                lacking[finding.shard_id].add(question.bucket_start(finding.sent_at))
        ends = [self._end(shard_id, lacking[shard_id]) for shard_id in self.held]
        return min(ends, default=None)

    def _end(self, shard_id: str, lacking: set[datetime]) -> datetime:
        cells = self.held[shard_id]
        at = self.first[shard_id]
        while at in cells and not cells[at] and at not in lacking:
            at += self.bucket
        before = [cell for cell, is_held in cells.items() if is_held]
        return min([at, *lacking, *before])
