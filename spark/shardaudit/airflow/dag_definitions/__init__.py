"""The DAGs: each a function that makes it, with what all its tasks have: `dags()` calls all."""
