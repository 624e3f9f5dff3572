"""The ingest: raw inputs → traces and ledger, each batch exactly once."""
