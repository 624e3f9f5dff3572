"""Small routes, and what their places may have traced of a message."""

from shardaudit.model.route.route import RoutePlace, Sighting

RECEIVED, BOTH, SENT = Sighting(1, 0), Sighting(1, 1), Sighting(0, 1)
LINE = {
    "router": RoutePlace(("producer",)),
    "enricher": RoutePlace(("router",)),
    "writer": RoutePlace(("enricher",)),
}
BRANCHES = {
    "router": RoutePlace(("producer",)),
    "eu": RoutePlace(("router",), 0.4),
    "us": RoutePlace(("router",), 0.6),
    "writer": RoutePlace(("eu", "us")),
}
FILTER = {"sieve": RoutePlace(("producer",), 0.3), "writer": RoutePlace(("sieve",))}
FANNED_OUT = {
    "sieve": RoutePlace(("producer",), 0.3),
    "eu": RoutePlace(("sieve",), 0.4),
    "us": RoutePlace(("sieve",), 0.6),
}
ROUND = {
    "router": RoutePlace(("producer",), 0.5),
    "writer": RoutePlace(("producer", "router"), 2 / 3),
}
TELLS = {"sieve": RoutePlace(("producer",), tells=True), "writer": RoutePlace(("sieve",))}
TELLING_BRANCHES = {
    "eu": RoutePlace(("producer",), 0.4),
    "us": RoutePlace(("producer",), tells=True),
    "writer": RoutePlace(("eu", "us")),
}
LEFT = Sighting(1, 0, 1)
Seen = dict[str, Sighting]
