"""The verbs of the command line that run the suite: `specdec gallery` is `gallery.py`, whose
function `gallery` has the options as arguments. What a verb needs is imported when it runs.
"""
