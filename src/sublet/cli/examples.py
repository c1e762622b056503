"""The request that `sublet ask --example` prints: a first one to change and send."""

FIRST = """\
# What to run: a command (run), or instead of it a script, an image, a notebook, a bag or an interactive session.
run: [python3, -c, "print('6 x 7 =', 6 * 7)"]
name: first

# What it needs, on each node. A range is welcome: 1-4 means at least 1, and up to 4.
cores: 1
memory: 1GiB

# For how long, and when it may begin. Without a start it is as soon as possible.
time: 10m
# start: tomorrow 09:00-12:00 Europe/London

# What is to be there before it starts.
# data: [https://example.org/cube.fits]
"""
