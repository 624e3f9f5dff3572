"""The doors to what runs the PySpark program; `door.py` chooses, `light.py` for small commands."""
