"""Small routes, and what their places may have traced of a message."""

from shardaudit.model.route import Hop, Sighting

RECEIVED, BOTH, SENT = Sighting(1, 0), Sighting(1, 1), Sighting(0, 1)
LINE = {"router": Hop(("producer",)), "enricher": Hop(("router",)), "writer": Hop(("enricher",))}
BRANCHES = {
    "router": Hop(("producer",)),
    "eu": Hop(("router",), 0.4),
    "us": Hop(("router",), 0.6),
    "writer": Hop(("eu", "us")),
}
FILTER = {"sieve": Hop(("producer",), 0.3), "writer": Hop(("sieve",))}
Seen = dict[str, Sighting]
