"""Does speculation pay for this pair? Every method on the same prompts, interleaved, against plain
decoding, with a verdict.
"""
