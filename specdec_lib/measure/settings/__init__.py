"""The drafts that are compared: a file per command, and one that builds each kind."""
