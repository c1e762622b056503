#!/bin/sh
cat ${1:-/dev/null}
awk '{ sum += $1 } END { print "sum", sum }' numbers.txt
