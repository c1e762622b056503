"""The request that `sublet ask --example` prints, the same as examples/first.yaml."""

FIRST = """\
# The first thing to ask for: when, and where, can this run?
#
#   sublet ask examples/first.yaml      shows offers
#   sublet run examples/first.yaml      takes the best and shows what it prints

name: hello
run: python3 -c "print('Hello from Sublet')"   # words, not a shell line; `script: |` takes a shell script
cores: 1
memory: 512MiB
time: 10m
"""
