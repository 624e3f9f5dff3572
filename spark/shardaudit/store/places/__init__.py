"""What the places of a route traced: for who reads of them without Spark."""
