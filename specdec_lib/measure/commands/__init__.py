"""The verbs of the command line that measure: `specdec measure table` is `measure/table.py`, whose
function `table` has the options as arguments. What a verb needs is imported when it runs.
"""
