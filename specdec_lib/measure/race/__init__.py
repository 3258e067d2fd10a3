"""One race for every measurement of speed: contenders take turns on the same texts."""
