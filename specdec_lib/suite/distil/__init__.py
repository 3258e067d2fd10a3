"""Makes the default drafts: text that the target writes itself, and what is learnt from it."""
