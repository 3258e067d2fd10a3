"""Runs the notebooks through papermill, once per fingerprint of what each depends on."""
