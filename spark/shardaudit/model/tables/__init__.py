"""The tables of the warehouse, as data."""
