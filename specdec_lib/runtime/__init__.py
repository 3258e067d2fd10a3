"""The same model, faster: one compiled CPU path; static keys and values and CUDA graphs per tree size."""
