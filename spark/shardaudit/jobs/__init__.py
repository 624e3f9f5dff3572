"""One file per command: the table of contents."""
