# VS Code's server on the Unix socket $SUBLET_SOCKET: code-server or openvscode-server, both under the MIT licence. It
# runs in the session's working directory, on a machine or in an image, behind a gate that checks access.
own=$PWD/.sublet
umask 077
mkdir -p "$own/code/data" "$own/code/extensions"
rm -f "$SUBLET_SOCKET"
for program in "${SUBLET_PROGRAM:-}" code-server openvscode-server; do
    [ -n "$program" ] && command -v "$program" >/dev/null 2>&1 || continue
    case ${program##*/} in
    code-server)
        exec "$program" --auth none --socket "$SUBLET_SOCKET" --socket-mode 600 --disable-telemetry --disable-update-check \
            --disable-getting-started-override --config "$own/code/config.yaml" \
            --user-data-dir "$own/code/data" --extensions-dir "$own/code/extensions" "$PWD"
        ;;
    *)
        exec "$program" --without-connection-token --socket-path "$SUBLET_SOCKET" --telemetry-level off \
            --server-data-dir "$own/code/data" --extensions-dir "$own/code/extensions" --default-folder "$PWD"
        ;;
    esac
done
echo "sublet: there is neither code-server nor openvscode-server here" >&2
exit 127
