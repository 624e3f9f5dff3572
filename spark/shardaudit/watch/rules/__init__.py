"""How the watch judges: plain values, and columns of the ledger."""
