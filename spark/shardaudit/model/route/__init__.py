"""A stream's route: its places, the hop that lost a message, the traces that places lose."""
