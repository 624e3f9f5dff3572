"""Traces of the places between the producer and the sink: what they receive and send on."""

from shardaudit.consumer.traced_place import TracedPlace as TracedPlace
from shardaudit.consumer.traced_place import trace as trace
