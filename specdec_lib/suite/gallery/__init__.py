"""Lays a folder's figures out as one page: `specdec gallery`.

`index.html` follows from the figures and the notebooks alone and is kept by git; `provenance.js`
beside it, which git ignores, holds what differs from run to run.
"""
