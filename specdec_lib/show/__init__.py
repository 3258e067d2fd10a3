"""Tables to plotly figures, their files, sliders over them, and a round step by step."""
