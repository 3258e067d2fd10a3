"""What a faster draft or a faster host would bring."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib import figures
from specdec_lib.theory import Gain, Overhead, PassTable


def faster_draft(
    gains: Callable[[Mapping[str, PassTable], Overhead, Overhead], Sequence[Gain]],
    tables: Mapping[str, PassTable],
    overheads: tuple[Overhead, Overhead],
    *,
    draft: float,
    host: float,
) -> go.Figure:
    """Speed-up against the budget if the draft were `draft` times as fast as its table says, and all outside the models `host` times.

    gains        (tables, overhead of a tree's round, overhead of a plain one) to gains, one per budget and depth, such as of `theory.tree_gains`
    overheads    both, as measured
    """
    faster = dict(tables) | {"draft": tables["draft"].faster(draft)}
    found = pd.DataFrame(gains(faster, *(Overhead(one.round / host, one.guess / host, one.draft_pass / host) for one in overheads)))
    said = f"draft {draft:g} × as fast, host {host:g} ×: {max(found.speed_up):.2f} times plain decoding"
    return figures.speed_ups(found.drop(columns="width")).update_layout(title={"text": said}, height=500, margin={"t": 96})
