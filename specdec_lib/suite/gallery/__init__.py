"""Lays a folder's figures out as one page: `specdec gallery`."""
