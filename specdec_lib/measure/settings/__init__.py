"""The drafts that are compared, by name: one grid, and what each measurement takes of it."""
