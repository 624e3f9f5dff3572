"""What happened to each cell and each message id."""
