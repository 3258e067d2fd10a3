"""Both papers' tables, figures and claims beside what was measured here, in the same units."""
