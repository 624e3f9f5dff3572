"""The repairs: plan → replay → land → verify, and the removal of what landed twice."""
