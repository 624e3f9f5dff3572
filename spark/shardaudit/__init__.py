"""Finds what was lost or doubled between Kinesis and the lake, in time to repair it."""
