"""The warehouse: reads and writes by the name of the thing."""
