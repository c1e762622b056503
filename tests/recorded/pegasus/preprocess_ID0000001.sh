#!/bin/bash
set -e
pegasus_lite_version_major="5"
chmod +x pegasus-kickstart
./pegasus-kickstart -n preprocess -N ID0000001 -R condorpool /bin/sh -c 'tr a-z A-Z < f.a > f.b; hostname'
