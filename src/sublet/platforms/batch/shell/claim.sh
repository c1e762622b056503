# Lets one service, and no other meanwhile, transfer an entry of the cache. Answers `other`, also if the entry is
# complete, or `mine` followed by the size and path of each file received so far, each ended by a zero byte. Arguments:
# the root directory, the entry's name in `kept`, who asks, and `take` to take the claim from any owner, or `look` to
# only list what has been received. `other` is followed by the owner, if that is a service.
umask 077
cd "$1/kept/$2" || exit 73
if [ "$4" != look ] && ! mkdir claim 2>/dev/null; then
    beat=$(stat -c %Y claim/beat 2>/dev/null || stat -c %Y claim) || beat=0
    [ $(($(date +%s) - beat)) -lt 90 ] && [ "$4" != take ] && { echo "other $(cat claim/owner 2>/dev/null)"; exit 0; }
    mv claim "claim.$$" 2>/dev/null && rm -rf "claim.$$" && mkdir claim 2>/dev/null || { echo other; exit 0; }
fi
if [ "$4" != look ]; then
    [ ! -e content ] || { rm -rf claim; echo other; exit 0; } # it was completed just now
    printf '%s\n' "$3" >claim/owner && : >claim/beat || exit 73
    rm -f failed came
fi
echo mine
[ -f part.file.sublet-part ] && find part.file.sublet-part -printf '%s \0'
[ -d part ] && find part -type f ! -name '*.sublet-*' -printf '%s %P\0'
exit 0
