#!/bin/sh
head -c 40000000 /dev/zero >large.tmp
mkdir made
echo table >made/one
wc -c <large.tmp >result.txt
