"""Published experiments: the values that papers print, and the same figures from recorded results.

A paper is data, a TOML file in `presets`. Each row holds its line of the paper word for word, and the published values
are read from that line.
"""
