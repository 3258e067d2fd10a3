"""Lays a folder's figures out as one page: `python -m specdec_lib.suite.gallery`.

`index.html` follows from the figures and the notebooks alone and is kept by git; `provenance.js`
beside it, which git ignores, holds what differs from run to run: machine, versions, commit,
seconds, failures.
"""

from specdec_lib.suite.gallery.building import build, made
from specdec_lib.suite.gallery.describing import Comparison, Description, comparison, descriptions
from specdec_lib.suite.gallery.manifest import Manifest, digest, remembered
from specdec_lib.suite.gallery.surroundings import surroundings

__all__ = [
    "Comparison",
    "Description",
    "Manifest",
    "build",
    "comparison",
    "descriptions",
    "digest",
    "made",
    "remembered",
    "surroundings",
]
