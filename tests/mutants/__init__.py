"""Mutation testing: small faults put into the product, to see which of them no check notices."""
