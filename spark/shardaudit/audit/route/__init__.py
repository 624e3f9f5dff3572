"""What the places between producer and sink say of an audit's window, and of what it found."""
