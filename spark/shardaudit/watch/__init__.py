"""The watch: what each shard is doing, until when that can be repaired, and who is told.

Plain Python over one small value per shard; nothing here knows Spark, AWS or a clock.
"""
