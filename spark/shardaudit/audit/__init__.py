"""The audit: ledger → verdicts → findings. `rules/` describes, the other files act."""
