"""Does speculation pay for this pair? Every method on the same prompts, with a verdict."""
