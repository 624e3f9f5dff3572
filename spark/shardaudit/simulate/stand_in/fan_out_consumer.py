"""One consumer of enhanced fan-out."""

from dataclasses import dataclass, field
from enum import StrEnum


class ConsumerStatus(StrEnum):
    """A consumer's life."""

    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    DELETING = "DELETING"


@dataclass(slots=True)
class Consumer:
    """It belongs to one stream. `subscribed_ms`: by shard, when it last did, machine's time."""

    name: str
    arn: str
    created_ms: int
    busy_until_machine_ms: int
    status: ConsumerStatus = ConsumerStatus.CREATING
    subscribed_ms: dict[str, int] = field(default_factory=dict)
