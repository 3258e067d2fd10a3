"""One race for every measurement of speed: contenders take turns on the same texts.

`harness.race` times contenders, `command.benchmark` tunes and races those of `specdec bench`.
"""
