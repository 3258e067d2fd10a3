"""One race for every measurement of speed: contenders take turns on the same texts.

`harness.race` times contenders, `lineup` tunes those of the benchmark, `bench` runs it.
"""
