"""What the command line's verbs share."""
