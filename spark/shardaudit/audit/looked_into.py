"""A look into the cells of a window that differ: at their ids."""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from shardaudit.adapters.engine.collected import collected
from shardaudit.audit.audit_request import AuditRequest
from shardaudit.audit.evidence import Sources
from shardaudit.audit.placing import buckets_of
from shardaudit.audit.rules.apart import other_places
from shardaudit.audit.rules.canary.canary_answers import is_canary
from shardaudit.audit.rules.carried import (
    Carried,
)
from shardaudit.audit.rules.drill_down import WANTED, suspects, unexplained, with_hash
from shardaudit.audit.window_ledger import WindowLedger
from shardaudit.columns.instants import in_windows
from shardaudit.columns.ledger_sums import CELL

FEW_IDS = 100_000  # at most so many to be looked for are sent to where the traces and rows are read


def is_audited(request: AuditRequest, name: str = "bucket_start") -> Column:
    """Whether a bucket of an id is one that is audited; all of the canary's are."""
    return in_windows(F.col(name), [request.aligned]) | is_canary("message_id")


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in cells. `read`, `seen`: of `Comparison`; `evidence`: EVIDENCE, read.

    `is_new`: whether any of it was read in the stream's own files.
    """

    read: DataFrame
    seen: DataFrame
    evidence: DataFrame
    is_new: bool


@dataclass(frozen=True, slots=True)
class Look:
    """Reads ids of a window. `ledger`: of `WindowLedger`; `apart`: of `Sources.apart`."""

    both: Sources
    request: AuditRequest
    ledger: WindowLedger
    known: Carried
    apart: DataFrame

    def into(self, differing: DataFrame, retried: DataFrame) -> Looked:
        """Looks into cells: by the one id that each differs by, or at all that stands in it.

        Input:
            differing: of `_to_read`; retried: of `Sources.retried_ids`.
        """
        alone = differing.where(F.col("id_hash").isNotNull())
        read = differing.where(F.col("id_hash").isNull()).select(*CELL)
        unsent = self.ledger.unsent
        seen = self.both.within(buckets_of(read)).seen(read, but=unsent)
        found = suspects(seen).union(with_hash(retried).select(*WANTED))
        # What a cell has too much may be sound where it was read in full. Presence only.
        hashes = F.broadcast(alone.select("id_hash"))
        sound = seen.join(hashes, ["id_hash"], how="left_semi").select(*WANTED)
        wanted = found.union(self.known.stale).union(alone.select(*WANTED)).union(sound)
        wanted = wanted.localCheckpoint()
        evidence, is_new = self._evidence(self.known.evidence, wanted)
        rest = unexplained(alone, self.ledger.cells, evidence).localCheckpoint()
        starts = buckets_of(rest)
        if starts:
            more = self.both.within(starts).seen(rest, but=unsent)
            read, seen = read.union(rest), seen.unionByName(more)
            others = suspects(seen).join(wanted, WANTED, how="left_anti")
            evidence, _ = self._evidence(evidence, others.localCheckpoint())
        return Looked(read, seen, evidence, is_new)

    def _evidence(self, before: DataFrame, wanted: DataFrame) -> tuple[DataFrame, bool]:
        """What stands of wanted and known ids, in the window and beyond it: EVIDENCE; read.

        Input:
            before: EVIDENCE of the known ids; wanted: WANTED.
        Output:
            also whether any of it was read in the stream's own files.
        """
        followed = self._followed(wanted)
        found = collected(followed.groupBy("bucket_start").count())
        if sum(row["count"] for row in found) <= FEW_IDS:
            followed = F.broadcast(followed)
        starts = [row.bucket_start for row in found]
        # Unique on the cell on the right; a cell outside of the window has no digest.
        digests = self.ledger.cells.select(*CELL, "bucket_digest")
        fresh = self.both.within(starts).cell_ids(followed).join(digests, CELL, how="left")
        whose = {"stream": F.lit(self.request.name), "sent_day": F.to_date("bucket_start")}
        evidence = (
            with_hash(before)
            .join(followed, WANTED, how="left_anti")
            .drop("id_hash")
            .unionByName(fresh.withColumns(whose))
            .localCheckpoint()
        )
        return evidence, bool(self.both.planted.left_out(starts))

    def _followed(self, wanted: DataFrame) -> DataFrame:
        """The wanted ids in all buckets in which they have traces: WANTED, unique; read.

        With them the ids that have traces on both sides of the window's edge; and, where it was
        read by an audit of another window, what that did not read of an id.
        """
        hashed = with_hash(self.known.evidence)
        is_inside = is_audited(self.request)
        crossing = self.apart.where(is_inside != is_audited(self.request, "counted_in"))
        ids = wanted.select("id_hash").union(with_hash(crossing).select("id_hash"))
        unread = other_places(hashed, self.apart).join(hashed, WANTED, how="left_anti")
        known = wanted.union(hashed.select(*WANTED))
        places = [wanted, other_places(ids, self.apart), unread, *self._beyond_the_era(known)]
        return reduce(DataFrame.union, places).distinct().localCheckpoint()

    def _beyond_the_era(self, known: DataFrame) -> list[DataFrame]:
        """The ids beside an edge of the era, across it: the ledger tells nothing of those there.

        A trace and its row, or two attempts, may bear times between which the edge runs, and be of
        one sample alone. What is there no audit of this era keeps: it is looked up each time.
        """
        return [
            known.where(in_windows(F.col("bucket_start"), [near])).select(
                "id_hash", F.explode(F.array(*map(F.lit, across))).alias("bucket_start")
            )
            for near, across in self.request.cells.beside(self.request.aligned)
        ]
