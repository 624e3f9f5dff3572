"""Names that are shardaudit's own: the ingest refuses shards and message ids that bear them."""

CANARY = "shardaudit-canary/"  # what each audit plants among its inputs, to find it again
