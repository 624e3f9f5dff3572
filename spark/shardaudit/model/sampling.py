"""How fine ids are sampled."""

SAMPLED_PARTS = 1_000_000
LEAST_RATE = 1 / SAMPLED_PARTS  # in a sample of less there would be no id
