"""Configurations as texts."""

LEAST = """
warehouse = "lake"
[streams.events]
stream_name = "events"
traces = { path = "traces" }
sink = { path = "file:///sink" }
"""
