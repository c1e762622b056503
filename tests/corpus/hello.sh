#!/bin/sh
printf '<%s>' "$@"
echo " on $(hostname)"
