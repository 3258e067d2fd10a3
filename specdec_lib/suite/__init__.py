"""What a person starts: the `specdec` command and its verbs."""
