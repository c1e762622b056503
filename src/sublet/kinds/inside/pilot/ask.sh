# Calls the service over HTTPS. Needs `urls`, and `pin`: the base64 of the SHA-256 of its public key. No secret is on a
# command line: the request's body is in a file.
#
#   ask PATH BODY ANSWER   0: the answer is in the file ANSWER
#                          1: no answer, and `words` says why;  2: the service refused, and `words` is its reason

ask() {
    words="there is neither curl nor wget nor openssl to ask with"
    for url in $urls; do
        for client in curl wget openssl; do
            command -v "$client" >/dev/null 2>&1 || continue
            status=
            rm -f "$3"
            "ask_$client" "$url$1" "$2" "$3" || { [ "$?" = 3 ] && continue; }
            case $status in
                2??) return 0 ;;
                429) words="$url has too much to do" ;;
                4??) words=$(head -n 1 "$3" | cut -c 1-300); return 2 ;;
                5??) words="$url answered with an error of its own ($status)" ;;
                *) words="$url: $(tr -d '\r' <"$3.err" 2>/dev/null | tail -n 1 | sed 's/ after [0-9]* ms$//; s/ after [0-9]* milliseconds$//' | cut -c 1-300)" ;;
            esac
            break
        done
    done
    return 1
}

# Each sets `status` if there was an answer, and returns 3 if this client doesn't support it here.

ask_curl() {
    status=$(curl -q --silent --show-error --insecure --pinnedpubkey "sha256//$pin" --connect-timeout 8 --speed-time 30 \
        --speed-limit 1 --header 'Content-Type: text/plain' --header 'Expect:' --data-binary "@$2" --output "$3" \
        --write-out '%{http_code}' "$1" 2>"$3.err")
    code=$?
    [ "$code" = 0 ] || status=
    case $code in 1 | 2 | 4) return 3 ;; esac
}

ask_wget() {
    wget --no-config --no-check-certificate --pinnedpubkey="sha256//$pin" --tries=1 --timeout=15 --no-verbose \
        --server-response --content-on-error --header='Content-Type: text/plain' --post-file="$2" --output-document="$3" "$1" \
        2>"$3.err"
    [ "$?" = 2 ] && return 3
    status=$(sed -n 's|^ *HTTP/[0-9.]* \([0-9]*\).*|\1|p' "$3.err" | tail -n 1)
}

ask_openssl() {
    at=${1#https://}
    path=/${at#*/} at=${at%%/*}
    timeout 15 openssl s_client -connect "$at" </dev/null 2>"$3.err" | openssl x509 >"$3.pem" 2>/dev/null || return 0
    key=$(openssl x509 -in "$3.pem" -noout -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | openssl base64)
    [ "$key" = "$pin" ] || { echo "its public key is not the one that was expected" >"$3.err"; return 0; }
    {
        printf 'POST %s HTTP/1.0\r\nHost: %s\r\nContent-Type: text/plain\r\n' "$path" "$at"
        printf 'Content-Length: %s\r\nConnection: close\r\n\r\n' "$(($(wc -c <"$2")))"
        cat "$2"
    } | timeout 600 openssl s_client -quiet -connect "$at" -CAfile "$3.pem" -verify 3 -verify_return_error >"$3.raw" 2>"$3.err"
    head=$(sed '/^\r*$/q' "$3.raw" | wc -c)
    status=$(sed -n '1s|^HTTP/[0-9.]* \([0-9]*\).*|\1|p' "$3.raw")
    tail -c "+$((head + 1))" "$3.raw" >"$3"
    rm -f "$3.raw"
}
