# Prints the state of an entry of the cache: `there SIZE`, `busy DONE TOTAL` during a transfer, `came`, `failed JSON`,
# or `idle`. Arguments: the root directory and the entry's name in `kept`. An entry that was changed since it was
# published is removed.
cd "$1/kept/$2" 2>/dev/null || { echo idle; exit 0; }
if [ -e content ]; then
    if is_unchanged .; then
        size=
        [ -r size ] && read -r size <size
        echo "there ${size:-$(stat -c %s content)}"
        exit 0
    fi
    rm -rf content seal size unpacked
fi
if [ -d claim ]; then
    beat=$(stat -c %Y claim/beat 2>/dev/null || stat -c %Y claim) || beat=0
    if [ $(($(date +%s) - beat)) -lt 90 ]; then
        told=
        [ -r progress ] && IFS= read -r told <progress
        echo "busy ${told:-0 0}"
        exit 0
    fi
fi
if [ -e came ]; then echo came; elif [ -r failed ]; then printf 'failed '; cat failed; else echo idle; fi
