"""What an audit says of cells and ids: no session, no table, no clock."""
