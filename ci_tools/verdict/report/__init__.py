"""The verdict in the forms that people and tools read; nothing is decided here."""
