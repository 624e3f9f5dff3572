"""A Kinesis server of the standard library alone, with a clock that can be moved.

`requests` reads what a client asks, `stream` and `shard` hold what it may ask about, the three
`*_operations` answer, `control` is the second door for tests, `server` speaks HTTP.
"""
