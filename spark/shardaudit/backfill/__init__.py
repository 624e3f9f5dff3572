"""Messages that never landed are planned, read again from the stream, decoded and verified."""
