#!/bin/sh
echo "$A/$B/$C/$CORPUS_WORD/$OMP_NUM_THREADS"
