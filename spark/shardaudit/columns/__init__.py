"""Column functions that more than one feature needs."""
