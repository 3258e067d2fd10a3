"""`specdec measure pages`."""


def pages() -> None:
    """Write every table of README and docs/ anew from what is stored in data/measured."""
    from specdec_lib.measure.renewing import renew_tables

    print(f"changed: {', '.join(renew_tables()) or 'none'}")
