"""What lines, rows and commits mean: no session, no table, no clock."""
