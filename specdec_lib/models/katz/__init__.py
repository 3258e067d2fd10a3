"""An n-gram model with Katz back-off as a `LanguageModel`."""
