"""The doors to what runs the PySpark program; `door.py` alone chooses between them."""
