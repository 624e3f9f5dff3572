"""Raw logs and sink commits to canonical rows; what is bad is set aside, never dropped."""
