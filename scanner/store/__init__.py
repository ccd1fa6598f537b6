"""The database: its schema, the only writer, and all reading."""
