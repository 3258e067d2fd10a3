"""`python export_guard.py PARENT SECONDS COMMAND …` runs the image exporter COMMAND, and hands
figures as lines of JSON from the process PARENT to it, and its answers back.

It kills the exporter, all that the exporter started and itself as soon as one answer takes more
than so many SECONDS, or PARENT has ended. For that it must be the first process of a group. It is
run as a file and imports Python's own modules only, so that it starts in hundredths of a second.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time

INTERVAL = 0.25  # seconds from one look at the clock and at the parent to the next
HUNG = b"hung\n"  # is handed back in place of an answer that took too long


class Watch:
    """Looks in every interval whether the exporter's answer is late, and whether the parent is
    still there, and if not kills the group.
    """

    def __init__(self, parent: int, limit: float) -> None:
        self.parent = parent
        self.limit = limit
        self.await_answer()
        signal.signal(signal.SIGALRM, self.look)
        signal.setitimer(signal.ITIMER_REAL, INTERVAL, INTERVAL)

    def await_answer(self) -> None:
        """Let the time of an answer begin."""
        self.deadline = time.monotonic() + self.limit

    def rest(self) -> None:
        """Wait for the next figure, however long that takes."""
        self.deadline = math.inf

    def look(self, *_: object) -> None:
        """What the timer calls."""
        late = time.monotonic() > self.deadline
        if late:
            os.write(sys.stdout.fileno(), HUNG)
        if late or os.getppid() != self.parent:
            os.killpg(0, signal.SIGKILL)


def main(parent: int, limit: float, command: list[str]) -> None:
    """Hand lines to and fro until the parent has no more or the exporter ends; then kill the group.

    The exporter's first line says whether it has started, and is handed back only if it has not.
    """
    watch = Watch(parent, limit)
    exporter = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert exporter.stdin is not None and exporter.stdout is not None  # they are pipes
    try:
        first = exporter.stdout.readline()
        watch.rest()
        if not first or json.loads(first)["code"]:
            hand_back(first)
            return
        for figure in sys.stdin.buffer:
            watch.await_answer()
            exporter.stdin.write(figure)
            exporter.stdin.flush()
            answer = exporter.stdout.readline()
            watch.rest()
            hand_back(answer)
            if not answer.endswith(b"\n"):
                return  # the exporter has ended, perhaps within a line
    finally:
        os.killpg(0, signal.SIGKILL)


def hand_back(line: bytes) -> None:
    """Write a line to the parent, at once."""
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
