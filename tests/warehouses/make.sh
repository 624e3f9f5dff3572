#!/bin/sh
# Makes the archive of a warehouse of an earlier version, by the code of its time:
#   sh tests/warehouses/make.sh VERSION SOURCES [OPTION…]
# SOURCES: a checkout of the last commit that wrote the version (2: f0944cf~1, 3: 3375201~1, 4: 754a209, 5: 310c91ba) with the packages and jars of its own; OPTION: as --engine embedded, from 3 on.
set -eu
version=$1 sources=$2 here=$(cd "$(dirname "$0")" && pwd)
shift 2
export PYTHONPATH="$sources/spark:$sources" AWS_EC2_METADATA_DISABLED=true
main=shardaudit.jobs.main
if [ "$version" -ge 4 ]; then main=shardaudit; fi
run() { python -m "$main" --config lake/shardaudit.toml "$@"; }
cd /tmp
rm -rf lake
python -m "$main" simulate files --out lake --messages 120 --shards 2 --hours 2 \
  --seed 7 --fault lost=3 --fault replay=2 --fault untraced=1 --fault retry=1
run "$@" audit --stream events --from 2026-11-01T00:00:00Z --to 2026-11-01T02:00:00Z \
  --as-of 2026-11-01T04:00:00Z
run "$@" findings accept --stream events --reason "test traffic" \
  --message-id e8c6dda5-1a3a-f480-05cc-7278e3994ae2
run "$@" backfill plan --stream events --from 2026-11-01T00:30:00Z --to 2026-11-01T01:30:00Z
if [ "$version" = 2 ]; then
  plan=$(run dedupe plan --stream events --json | sed -n 's/.*"plan_id": "\([^"]*\)".*/\1/p')
  run dedupe run --plan "$plan" --approve-as ann --as-of 2026-11-01T05:00:00Z
fi
run "$@" watch --stream events --as-of 2026-11-01T05:30:00Z
run "$@" findings list --stream events --json > lake/findings.json
rm -f lake/planted.parquet lake/simulation.json
find lake -name '*.crc' -delete
rm -rf lake/warehouse/_claims
tar -cf - lake | xz -9e > "$here/version_$version.tar.xz"
rm -rf lake
