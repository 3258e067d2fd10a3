"""How the drafts were made, in this order: passages, write, overlap, teach, train, online, ngrams,
finish, matches.
"""
