"""The numbers of an audit, and how they are shown."""
