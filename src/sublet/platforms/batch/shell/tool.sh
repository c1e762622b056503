# Fetches an entry of the cache with a program of this host, even if the connection is lost. It stands after rsync.sh,
# git.sh, curl.sh or curl_folder.sh, whose `bring` fetches, and whose `count` prints how many bytes have arrived.
# Arguments: the entry's directory, and the name of a plan in it, lines of a name and a value, which may contain
# credentials and is removed as soon as it is open. It claims the entry as claim.sh does, reports progress and
# heartbeats, stops when no session needs the entry any more, and leaves `came` when all is in `part`, or `failed` with
# a kind and a reason, as far/fetcher.py does.
umask 077
cd "$1" && exec 3<"$2" || exit 73
rm -f "$2" "$0" # so that killing this leaves no file behind
shift 2
total=0 largest=0 rate=0 form=folder address= secret= commit= folder= resolve= public= version= stopped=
while IFS= read -r line <&3; do
    value=${line#* }
    case ${line%% *} in
        total) total=$value ;;
        largest) largest=$value ;;
        rate) rate=$value ;;
        form) form=$value ;;
        address) address=$value ;;
        secret) secret=$value ;;
        commit) commit=$value ;;
        folder) folder=$value ;;
        resolve) resolve=$value ;;
        public) public=$value ;;
        version) version=$value ;;
        option) set -- "$@" "$value" ;;
        rest) break ;; # the rest is read by `bring`, as it is too long for arguments
    esac
done

be_the_one() {
    mkdir claim 2>/dev/null && return
    beat=$(stat -c %Y claim/beat 2>/dev/null || stat -c %Y claim) || beat=0
    [ $(($(date +%s) - beat)) -lt 90 ] && return 1
    mv claim "claim.$$" 2>/dev/null && rm -rf "claim.$$" && mkdir claim 2>/dev/null
}

is_needed() {
    for user in users/*; do
        user=${user##*/}
        if [ -d "../../sessions/$user" ] || [ -d "../../incoming/$user" ]; then return 0; fi
    done
    return 1
}

watch() { # stops a transfer that nobody needs, or that exceeds the limit
    while sleep 2; do
        done=$(count 2>/dev/null)
        is_needed || kill -TERM 0
        if [ "$largest" != 0 ] && [ "${done:-0}" -gt "$((largest * ${share:-1} + ${beside:-0}))" ]; then : >claim/much; kill -TERM 0; fi
        printf '%s %s\n' "${done:-0}" "$total" >progress.new && mv progress.new progress
        : >claim/beat
    done
}

tidy() { rm -rf claim progress complaint work; }

drop() { rm -rf part part.file*; }

fail() { # arguments: a kind, and why
    kind=$1
    case $2 in *"No space left"* | *"quota exceeded"*) kind=full ;; esac
    case $kind in full | wrong | changed) drop ;; esac
    why=$(printf '%s' "$2" | tr '\\"\t\n' "/' ;" | tr -d '[:cntrl:]' | cut -c 1-500)
    printf '{"kind": "%s", "why": "%s"}\n' "$kind" "$why" >failed.new && mv failed.new failed
    end 1
}

end() {
    kill "$watcher" 2>/dev/null
    tidy
    exit "$1"
}

be_the_one || exit 0
[ ! -e content ] || { rm -rf claim; exit 0; } # it exists, or was completed just now
: >claim/beat
rm -rf failed came complaint work
trap 'stopped=yes' TERM
watch </dev/null 3<&- &
watcher=$!
bring "$@"
code=$?
[ ! -e claim/much ] || fail wrong "it has more than $largest bytes, the most that is downloaded here"
[ -z "$stopped" ] || end 1 # nobody needs it
[ "$code" = 0 ] || fail failed "it ended with exit code $code"
: >came
end 0
