"""What figures are made of: dots with intervals, lines with bands, cells, bars, sheets."""
