# VS Code's server on the Unix socket $SUBLET_SOCKET: code-server, or openvscode-server; both are under the MIT licence. It
# runs in the session's working directory, on a machine or in an image. Who may come in is asked before it.
own=$PWD/.sublet
umask 077
mkdir -p "$own/code/data" "$own/code/extensions"
rm -f "$SUBLET_SOCKET"
if command -v code-server >/dev/null 2>&1; then
    exec code-server --auth none --socket "$SUBLET_SOCKET" --socket-mode 600 --disable-telemetry --disable-update-check \
        --disable-getting-started-override --config "$own/code/config.yaml" \
        --user-data-dir "$own/code/data" --extensions-dir "$own/code/extensions" "$PWD"
fi
if command -v openvscode-server >/dev/null 2>&1; then
    exec openvscode-server --without-connection-token --socket-path "$SUBLET_SOCKET" --telemetry-level off \
        --server-data-dir "$own/code/data" --extensions-dir "$own/code/extensions" --default-folder "$PWD"
fi
echo "sublet: there is neither code-server nor openvscode-server here" >&2
exit 127
