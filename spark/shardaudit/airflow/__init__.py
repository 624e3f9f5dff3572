"""What a DAG needs: operators, forms, steps. Reaches no engine while a file is parsed."""
