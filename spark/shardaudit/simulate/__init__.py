"""Streams with planted faults, and the Kinesis stand-in they run on."""
