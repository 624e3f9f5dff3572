"""What is read of tables that grow as long as a stream has faults, at a cost that does not."""
