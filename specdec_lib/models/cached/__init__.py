"""Any Hugging Face decoder as a `LanguageModel` behind a cache keyed by path."""
