# Fetches a folder into an entry of the cache with one curl for all its files, in parallel where curl supports that. The
# rest of the plan has the size, version and path of each file, and its lines of a curl config with credentials, which
# curl reads from standard input only. The files stay in a separate folder until all have arrived with the sizes and
# versions they had when they were last checked, so that no other transfer resumes from the wrong data. An interrupted
# file is fetched again from its start.
pieces=part.file.pieces heads=part.file.heads whole=part.file.whole

count() { find "$pieces" -type f -printf '%s\n' 2>/dev/null | awk '{ sum += $1 } END { printf "%.0f\n", sum }'; }

find_release() { curl -V | sed -n '1s/^curl \([0-9]*\)\.\([0-9]*\).*/\1 \2/p' | { read -r major minor && echo $((major * 1000 + minor)); }; }

set_common() { # the first settings of each file
    printf '%s\n' fail globoff create-dirs 'proto = "=http,https"' 'max-redirs = 0' 'connect-timeout = 10' 'speed-time = 60' 'speed-limit = 1'
    [ "$release" -lt 7054 ] || echo suppress-connect-headers
    [ "$rate" = 0 ] || echo "limit-rate = $rate"
}

ask() { # fetches all files that are not complete yet
    printf '%s\n' "$rest" | common=$(set_common) awk -v heads="$heads" -v whole="$whole" '
        BEGIN { while ((getline line <whole) > 0) has[line] = 1 }
        $1 == "size" { number++; wanted = !(number in has); if (!wanted) next
            if (sections++) print "next"
            print ENVIRON["common"]; print "dump-header = \"" heads "/" number "\""; if ($2 > 0) print "max-filesize = " $2 }
        wanted && $1 == "option" { print substr($0, 8) }' | (
        [ "$most" = 0 ] || ulimit -f "$(((most + 65536) / 512 + 1))"
        exec curl -q --silent --show-error $parallel --config - >/dev/null 2>complaint 3<&-
    )
    code=$?
}

judge_files() { # writes a line for each file that was not complete: `whole` and its number, or the failure and why
    {
        find "$pieces" -type f -printf '%s %P\n'
        echo //
        printf '%s\n' "$rest"
    } | awk -v heads="$heads" -v whole="$whole" '
        function bare(text) { sub(/^W\//, "", text); return text }
        function judge(    file, line, name, status, tag, date) {
            file = heads "/" number
            while ((getline line <file) > 0) {
                sub(/\r$/, "", line)
                name = tolower(line)
                sub(/:.*/, "", name)
                if (line ~ /^HTTP\//) { status = line; sub(/^[^ ]* */, "", status); tag = date = "" }
                if (name == "etag") { tag = line; sub(/^[^:]*: */, "", tag) }
                if (name == "last-modified") { date = line; sub(/^[^:]*: */, "", date) }
            }
            close(file)
            if (status == "") return
            if (status ~ /^(408|425|429|500|502|503|504)/) { print "again the server answered " status; return }
            if (status ~ /^3/) { print "refused its address leads on, which is followed only where a Python can check to where"; return }
            if (status !~ /^200/) { print "refused the server answered " status; return }
            if (version != "" && tag date != "" && bare(version) != bare(tag) && bare(version) != bare(date)) { print "changed"; return }
            if (came[path] + 0 == size) print "whole " number
            else if (came[path] + 0 > size) print "wrong " path " has more than the " size " bytes that were expected"
        }
        BEGIN { while ((getline line <whole) > 0) has[line] = 1 }
        !begun { if ($0 == "//") begun = 1; else { bytes = $1; sub(/^[0-9]* /, ""); came[$0] = bytes }; next }
        $1 == "size" { number++; size = $2; version = ""; next }
        $1 == "version" { version = substr($0, 9); next }
        $1 == "path" { path = substr($0, 6); if (!(number in has)) judge() }' >part.file.judged
    sed -n 's/^whole //p' part.file.judged >>"$whole"
}

find_line() { sed -n "s/^$1 *//p" part.file.judged | head -n 1; }

judge() { # fails if another try cannot help; else `why` says what went wrong
    ! grep -q '^changed' part.file.judged || fail changed "it changed since it was looked at"
    for kind in wrong refused; do
        ! grep -q "^$kind" part.file.judged || fail "$kind" "$(find_line "$kind")"
    done
    why=$(find_line again)
    [ -n "$why" ] || why=$(sed 's/^curl: ([0-9]*) //' complaint | head -n 1)
    case $code in
        1 | 2 | 3 | 4 | 48) fail failed "its curl can't be told how: exit code $code" ;;
        5 | 6 | 7 | 35 | 51 | 58 | 59 | 60 | 77 | 83 | 90 | 91) [ -s "$whole" ] || fail unreachable "$why" ;;
        23) fail full "$why: $(df -P . | tail -n 1)" ;;
        63) fail wrong "$why" ;;
        12[67]) fail failed "$why" ;;
    esac
}

lay_empty() { # curl may not create empty files
    printf '%s\n' "$rest" | awk '$1 == "size" { size = $2 } $1 == "path" && size == 0 { print substr($0, 6) }' | while IFS= read -r path; do
        case $path in */*) mkdir -p "$pieces/${path%/*}" ;; esac
        [ -e "$pieces/$path" ] || : >"$pieces/$path"
    done
}

bring() {
    case $(command -v printf) in /*) fail unfit "its shell would show the address to others" ;; esac
    command -v awk >/dev/null || fail unfit "it has no awk"
    release=$(find_release)
    [ "${release:-0}" -ge 7036 ] || fail unfit "its curl is too old for folders"
    parallel=
    if [ "$release" -ge 7068 ] && [ "$rate" = 0 ]; then parallel="--parallel --parallel-immediate --parallel-max 8"; fi
    [ -z "$public" ] || export no_proxy='*' NO_PROXY='*'
    rest=$(cat <&3)
    most=$total failures=0 best=0 pause=1 files=$(printf '%s\n' "$rest" | grep -c '^size ')
    [ "$most" != 0 ] || most=$largest
    rm -rf "$pieces" "$heads" "$whole" # left by a try that was killed: its version is unknown
    mkdir -p "$pieces" && : >"$whole" || return
    lay_empty
    while :; do
        rm -rf "$heads"
        mkdir "$heads" || return
        ask
        [ -z "$stopped" ] || return 1
        judge_files
        came=$(grep -c . "$whole")
        [ "$came" != "$files" ] || break
        judge
        if [ "$came" -gt "$best" ]; then best=$came failures=0 pause=1; fi
        failures=$((failures + 1))
        [ "$failures" -lt 5 ] || fail cut "${why:-it broke off} ($failures tries, $came of $files files so far)"
        sleep "$pause" 3<&-
        pause=$((pause * 2))
    done
    rm -rf part "$heads" "$whole" part.file.judged
    mv "$pieces" part
}
