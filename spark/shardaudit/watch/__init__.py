"""The watch: what each shard is doing, until when that can be repaired, and who is told."""
