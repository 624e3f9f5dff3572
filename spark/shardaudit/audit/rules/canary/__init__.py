"""The self-check: a shard of planted messages, and what an audit has to say of each."""
