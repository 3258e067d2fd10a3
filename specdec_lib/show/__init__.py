"""A table in, a plotly figure out; sliders over those."""
