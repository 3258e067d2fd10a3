"""`specdec measure states`."""


def states() -> int:
    """Name the stored tables that were clocked with other code or drafts than today's; the exit
    status is 1 if there is one that says so.
    """
    from specdec_lib.measure.states import OLDER, stored_states

    found = stored_states()
    print(found.to_string(index=False))
    older = found[found.age == OLDER].table
    print(f"older than the code: {', '.join(older) or 'none'}")
    return int(len(older) > 0)
