"""What a repair is to do and what that costs: nothing is read or written here."""
