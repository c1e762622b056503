# Has Apptainer on this host build an image for many sessions; temporary files are removed. Arguments: the root
# directory, the image's name in `kept` (as keep.sh made it), the session, Apptainer, the image's location, and for a
# kept archive the digests that identify it. A registry's image becomes `content`, one from an archive becomes
# `image.sif` beside it, with `image.names`, as the first session that needs it would make them (container_images.py).
dir=$1/kept/$2 key=$3 tool=$4 location=$5
shift 5
made=$dir/pull.$$
trap '' HUP PIPE
umask 077
mkdir -p "$made/tmp" || exit 73
for prefix in APPTAINER SINGULARITY; do
    export "${prefix}_CONFIGDIR=$made" "${prefix}_CACHEDIR=$made/cache" "${prefix}_TMPDIR=$made/tmp"
done
nice "$tool" --silent pull --disable-cache --force "$made/image" "$location" </dev/null >&2
code=$?
if [ $# -gt 0 ]; then
    [ "$code" = 0 ] && printf '%s\n' "$@" >"$made/names" && mv -f "$made/names" "$dir/image.names" && mv -f "$made/image" "$dir/image.sif" || code=75
else
    [ "$code" = 0 ] && chmod a-w "$made/image" && mv -f "$made/image" "$dir/content" || code=75
fi
chmod -R u+rwX "$made" && rm -rf "$made"
[ "$code" = 0 ] || [ $# -gt 0 ] || { rm -f "$dir/users/$key" && rmdir "$dir/users" && rm -f "$dir/used" "$dir/label" && rmdir "$dir"; } 2>/dev/null
exit "$code"
