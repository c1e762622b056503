#!/bin/sh
cat linked/name linked/deep/file
ln -s /etc/hostname left.link
ln -s nowhere gone.link
mkfifo left.pipe
echo made >left.txt
