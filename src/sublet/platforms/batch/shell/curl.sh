# Fetches one file into an entry of the cache with curl. Its options are lines of a curl config with the address and the
# headers that authenticate, which curl reads from standard input only; `version` is the file's version when it was last
# checked. It resumes a partial file of the same version, and follows no redirects. The received data has a name of its
# own until the server's headers have shown its version, so that no other transfer resumes from the wrong data.
whole=part.file.sublet-part mark=part.file.sublet-mark piece=part.file.curl heads=part.file.headers

count() { stat -c %s "$piece" 2>/dev/null || stat -c %s "$whole" 2>/dev/null || echo 0; }

forget() { rm -f "$whole" "$mark" "$piece"; }

find_header() { tr -d '\r' <"$heads" | sed -n "s/^$1 *//Ip" | tail -n 1; }

settle() { # keeps the received data if it is of the right version, and fails otherwise
    status= tag= date= span= after=
    if [ -e "$heads" ]; then
        status=$(find_header 'HTTP\/[^ ]*') tag=$(find_header etag:) date=$(find_header last-modified:)
        span=$(find_header content-range:) after=$(find_header retry-after:)
        rm -f "$heads"
    fi
    case $status in
        20[06]*)
            if [ -n "$version" ] && [ -n "$tag$date" ] && [ "${version#W/}" != "${tag#W/}" ] && [ "${version#W/}" != "${date#W/}" ]; then
                forget
                return 1
            fi
            if [ -s "$mark" ]; then asked=part; else asked=; fi
            [ "${asked:+part}" = "${span:+part}" ] || { forget; odd=yes; return 0; }
            case $tag in '"'*) ;; *) tag=$date ;; esac # a weak validator cannot join parts
            [ -n "$asked" ] || printf '%s' "$tag" >"$mark"
            ;;
        *) [ -s "$mark" ] || rm -f "$piece" ;; # the body of another answer
    esac
    [ ! -e "$piece" ] || mv "$piece" "$whole"
}

ask() {
    if [ -s "$mark" ] && [ -e "$whole" ]; then
        mv "$whole" "$piece"
        set -- "$@" "header = \"If-Range: $(sed 's/[\\"]/\\&/g' "$mark")\"" 'continue-at = "-"'
    else
        forget
    fi
    [ "$rate" = 0 ] || set -- "$@" "limit-rate = $rate"
    [ "$most" = 0 ] || set -- "$@" "max-filesize = $most"
    facts=$(
        [ "$most" = 0 ] || ulimit -f "$(((most + 65536) / 512 + 1))"
        printf '%s\n' "$@" | curl -q --silent --show-error --fail --globoff --proto =http,https --max-redirs 0 --connect-timeout 10 \
            --speed-time 60 --speed-limit 1 --write-out '%{http_connect} %{time_connect}' --dump-header "$heads" --output "$piece" \
            --config - 2>complaint 3<&-
    )
    code=$?
}

check_size() {
    if [ "$total" != 0 ] && { [ "$size" -gt "$total" ] || [ "$code" = 63 ]; }; then
        fail wrong "it has more than the $total bytes that were expected"
    fi
    if [ "$largest" != 0 ] && { [ "$size" -gt "$largest" ] || [ "$code" = 63 ]; }; then
        fail wrong "it has more than $largest bytes, the most that is downloaded here"
    fi
}

judge() { # fails if another try cannot help; else `why` says what went wrong
    why=$(sed 's/^curl: ([0-9]*) //' complaint | head -n 1)
    case ${facts%% *} in 000 | 0 | 200 | '') ;; *) fail unreachable "its proxy does not lead there: ${facts%% *}" ;; esac
    case $status in
        408* | 425* | 429* | 500* | 502* | 503* | 504*) why="the server answered $status" ;;
        416*) forget; why="the server has less of it than before" ;;
        3*) fail refused "its address leads on, which is followed only where a Python can check to where" ;;
        [45]*) fail refused "the server answered $status" ;;
    esac
    [ -z "$odd" ] || why="the server sent another part than was asked for"
    case $code in
        1 | 2 | 3 | 4 | 48) fail failed "its curl can't be told how: exit code $code" ;;
        5 | 6 | 7 | 35 | 51 | 58 | 59 | 60 | 77 | 83 | 90 | 91) fail unreachable "$why" ;;
        23) fail full "$why: $(df -P . | tail -n 1)" ;;
        28) case ${facts#* } in *[1-9]*) ;; *) fail unreachable "$why" ;; esac ;; # it never connected
        12[67]) fail failed "$why" ;;
    esac
}

bring() {
    case $(command -v printf) in /*) fail unfit "its shell would show the address to others" ;; esac
    [ -z "$public" ] || export no_proxy='*' NO_PROXY='*'
    most=$total failures=0 best=0 pause=1
    [ "$most" != 0 ] || most=$largest
    settle || : # left by a try that was killed
    [ -s "$mark" ] && [ -e "$whole" ] || forget
    while [ "$total" = 0 ] || [ "$(count)" != "$total" ]; do
        odd=
        ask "$@"
        settle || fail changed "it changed since it was looked at"
        [ -z "$stopped" ] || return 1
        size=$(count)
        check_size
        case $code$status in 020[06]*) [ -n "$odd" ] || break ;; esac
        judge
        if [ "$size" -gt "$best" ]; then best=$size failures=0 pause=1; fi
        failures=$((failures + 1))
        [ "$failures" -lt 5 ] || fail cut "${why:-it broke off} ($failures tries, $size bytes so far)"
        case $after in '' | *[!0-9]* | ????*) after=0 ;; esac
        [ "$after" -le 30 ] || after=30
        [ "$after" -gt "$pause" ] || after=$pause
        sleep "$after" 3<&-
        pause=$((pause * 2))
    done
    [ "$total" = 0 ] || [ "$(count)" = "$total" ] || fail wrong "$(count) of $total bytes came"
}
