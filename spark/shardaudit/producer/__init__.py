"""Trace logs, written where messages are put: a wrapper of boto3's Kinesis client. No engine."""

from shardaudit.producer.traced_kinesis import TracedKinesis as TracedKinesis
from shardaudit.producer.traced_kinesis import traced as traced
