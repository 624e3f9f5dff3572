"""The only doors to the outside."""
