"""`specdec setup`."""


def setup() -> None:
    """Prepare the SmolLM2 target model, once; the other verbs do it too."""
    from specdec_lib.suite.setup import prepare_target

    print(f"the target is in {prepare_target()}")
