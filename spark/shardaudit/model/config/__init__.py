"""The configuration, as frozen values."""
